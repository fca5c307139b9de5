package main

// Rows that nothing sorts: cases of the program. They come as their items were created: across
// the keys of a physical partition, inside each key, and where the values that sort them are equal.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	// The ids, as they are created: neither they nor their keys are in any other order.
	alphabet = "mzakqcxbtehwdnyfuljrgp"
	// What many small pages cost in a second; a container with that still has one partition.
	onePartitionMax = 6000

	ties = "SELECT * FROM c ORDER BY c.same"
)

var unsorted = []string{"SELECT * FROM c", "SELECT * FROM c WHERE c.same = 1", "SELECT * FROM c WHERE c.code > 0"}

func letterKey(letter rune) string {
	return fmt.Sprintf("key %d", strings.IndexRune(alphabet, letter)*3%5)
}

func letterItem(letter rune, version int) []byte {
	return marshal(document{"id": string(letter), "pk": letterKey(letter), "same": 1, "code": letter, "version": version})
}

func createLetters(container *azcosmos.ContainerClient, letters string) string {
	for _, letter := range letters {
		must(container.CreateItem(ctx, text(letterKey(letter)), letterItem(letter, 0), nil))
	}
	return letters
}

// only gives the letters for which something holds.
func only(letters string, holds func(rune) bool) string {
	return strings.Map(func(letter rune) rune {
		if holds(letter) {
			return letter
		}
		return -1
	}, letters)
}

func ofKey(letters, key string) string {
	return only(letters, func(letter rune) bool { return letterKey(letter) == key })
}

func among(letters, others string) string {
	return only(letters, func(letter rune) bool { return strings.ContainsRune(others, letter) })
}

// readLetters reads each page by a pager of its own, which is given the token of the page before.
func readLetters(
	ctx context.Context, container *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, size int32,
) (letters string) {
	options := &azcosmos.QueryOptions{PageSizeHint: size}
	for {
		page := must(container.NewQueryItemsPager(query, key, options).NextPage(ctx))
		for _, item := range page.Items {
			var row struct{ ID string }
			check(json.Unmarshal(item, &row) == nil, "no object: %s", item)
			letters += row.ID
		}
		if page.ContinuationToken == nil {
			return letters
		}
		options.ContinuationToken = page.ContinuationToken
	}
}

// checkOrder demands that each way of reading gives every item once, and those of each sequence in its order.
// Across keys this SDK can only be given sorted rows that the server has merged.
func checkOrder(container *azcosmos.ContainerClient, key azcosmos.PartitionKey, sequences ...string) {
	merged := policy.WithHTTPHeader(ctx, http.Header{"X-Orrery-Query-Merge": {"true"}})
	for _, query := range append([]string{ties}, unsorted...) {
		for _, size := range []int32{100, 2} {
			in := ctx
			if query == ties {
				in = merged
			}
			letters := readLetters(in, container, query, key, size)
			for _, sequence := range sequences {
				found := among(letters, sequence)
				check(found == sequence, "%s in pages of %d: %s instead of %s", query, size, found, sequence)
			}
			all := []rune(strings.Join(sequences, ""))
			slices.Sort(all)
			found := []rune(letters)
			slices.Sort(found)
			check(slices.Equal(found, slices.Compact(all)), "%s in pages of %d: %s", query, size, letters)
		}
	}
}

func (w *world) onePartition(name string) *azcosmos.ContainerClient {
	throughput := azcosmos.NewManualThroughputProperties(onePartitionMax)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
	must(w.database.CreateContainer(ctx, keyed(name, "/pk"), options))
	return must(w.database.NewContainer(name))
}

var everyKey = azcosmos.NewPartitionKey()

func rowsComeAsTheirItemsWereCreated(w *world) {
	container := w.onePartition("created")
	letters := createLetters(container, alphabet[:14])
	checkOrder(container, everyKey, letters)
	for _, key := range []string{"key 0", "key 3"} {
		checkOrder(container, text(key), ofKey(letters, key))
	}
	// Whatever changes an item leaves it where it is.
	must(container.ReplaceItem(ctx, text(letterKey('a')), "a", letterItem('a', 1), nil))
	must(container.UpsertItem(ctx, text(letterKey('z')), letterItem('z', 1), nil))
	var patch azcosmos.PatchOperations
	patch.AppendSet("/version", 1)
	must(container.PatchItem(ctx, text(letterKey('x')), "x", patch, nil))
	checkOrder(container, everyKey, letters)
	// An item that is deleted and created again is a new one.
	must(container.DeleteItem(ctx, text(letterKey('k')), "k", nil))
	letters = strings.Replace(letters, "k", "", 1) + createLetters(container, "k")
	checkOrder(container, everyKey, letters)
	checkOrder(container, text(letterKey('k')), ofKey(letters, letterKey('k')))
}

// operate changes a layout as an operator would, and gives back the ids of the new ranges.
func (w *world) operate(verb string, body document) (ids []string) {
	request := must(http.NewRequest(http.MethodPost, w.endpoint+"_orrery/"+verb, bytes.NewReader(marshal(body))))
	request.Header.Set("Authorization", "Bearer "+w.key)
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	var change struct{ New []struct{ ID string } }
	failure := json.NewDecoder(response.Body).Decode(&change)
	check(response.StatusCode == 200 && failure == nil, "%s: %s", verb, response.Status)
	for _, each := range change.New {
		ids = append(ids, each.ID)
	}
	return ids
}

// byRange gives the letters of each range, as they were created. Queries of this SDK name no range; its change feeds do.
func byRange(container *azcosmos.ContainerClient, letters string) (ranges []string) {
	for _, each := range must(container.ReadFeedRanges(ctx, nil)) {
		changes, _ := feed(container, azcosmos.ChangeFeedOptions{FeedRange: &each})
		ranges = append(ranges, among(letters, strings.Join(ids(changes), "")))
	}
	return ranges
}

func rowsKeepTheirOrderThroughSplitsAndMerges(w *world) {
	container := w.onePartition("moved")
	link := fmt.Sprintf("dbs/%s/colls/moved", w.database.ID())
	letters := createLetters(container, alphabet[:10])
	children := w.operate("split", document{"container": link, "range": "0"})
	checkOrder(container, everyKey, byRange(container, letters)...)
	letters += createLetters(container, alphabet[10:16])
	parts := byRange(container, letters)
	check(len(parts) == 2 && len(parts[0]) > 3 && len(parts[1]) > 3, "%v", parts)
	checkOrder(container, everyKey, parts...)
	merged := w.operate("merge", document{"container": link, "ranges": children})
	check(len(merged) == 1, "%v", merged)
	checkOrder(container, everyKey, parts...)
	later := createLetters(container, alphabet[16:20])
	sequences := []string{parts[0] + later, parts[1] + later}
	checkOrder(container, everyKey, sequences...)
	item := document{"id": "order", "deviceId": "order", "sequences": sequences}
	must(w.container.UpsertItem(ctx, text("order"), marshal(item), nil))
}

func verifyOrderAfterRestart(w *world) {
	created := must(w.database.NewContainer("created"))
	letters := strings.Replace(alphabet[:14], "k", "", 1) + "k" + createLetters(created, alphabet[14:16])
	checkOrder(created, everyKey, letters)
	moved := must(w.database.NewContainer("moved"))
	var sequences []string
	for _, each := range w.read(text("order"), "order")["sequences"].([]any) {
		sequences = append(sequences, each.(string))
	}
	later := createLetters(moved, alphabet[20:])
	checkOrder(moved, everyKey, sequences[0]+later, sequences[1]+later)
}
