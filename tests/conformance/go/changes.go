package main

// The change feed: cases of the program. This SDK reads it by feed ranges, from the
// beginning, a time or a continuation; it has no call for a feed that begins now.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	keys = 7
	// A layout changes in well under a second; a machine may be busy with other things.
	patience = time.Minute
)

// everything is the feed range of a whole container.
var everything = azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// versions are those of items, by key, in the order of their writes.
type versions map[string][]version

type version struct {
	id      string
	version int
}

// A writer writes items and knows what a feed must tell that begins where take was last called.
type writer struct {
	container *azcosmos.ContainerClient
	expected  versions
}

func keyOf(number int) string {
	return fmt.Sprintf("key %d", number%keys)
}

func (w *writer) forget(number int) {
	isIt := func(each version) bool { return each.id == strconv.Itoa(number) }
	w.expected[keyOf(number)] = slices.DeleteFunc(w.expected[keyOf(number)], isIt)
}

func (w *writer) put(number, value int) document {
	item := document{"id": strconv.Itoa(number), "pk": keyOf(number), "version": value}
	written := must(w.container.UpsertItem(ctx, text(keyOf(number)), marshal(item), withContent))
	w.forget(number)
	w.expected[keyOf(number)] = append(w.expected[keyOf(number)], version{strconv.Itoa(number), value})
	return content(written)
}

func (w *writer) delete(number int) {
	must(w.container.DeleteItem(ctx, text(keyOf(number)), strconv.Itoa(number), nil))
	w.forget(number)
}

// writeSome creates items, changes some of them once or twice and deletes some.
func (w *writer) writeSome(first int) {
	end := first + 4*keys
	for value, every := range []int{1, 3, 6} {
		for number := first; number < end; number += every {
			w.put(number, value)
		}
	}
	for number := first; number < end; number += 5 {
		w.delete(number)
	}
}

func (w *writer) take() versions {
	taken := versions{}
	for key, each := range w.expected {
		if len(each) > 0 {
			taken[key] = each
		}
	}
	w.expected = versions{}
	return taken
}

// checkChanges demands of each key every item once, in its latest version, in the order of the writes.
func checkChanges(changes []document, expected versions) {
	told, last := versions{}, map[string]float64{}
	for _, change := range changes {
		key, lsn := change["pk"].(string), change["_lsn"].(float64)
		told[key] = append(told[key], version{change["id"].(string), int(change["version"].(float64))})
		check(lsn > last[key], "_lsn %v after %v of %s", lsn, last[key], key)
		last[key] = lsn
	}
	check(fmt.Sprint(told) == fmt.Sprint(expected), "%v instead of %v", told, expected)
}

// feed gives all that there is now, and the position behind it: an empty page says that nothing is new.
func feed(container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) (changes []document, position string) {
	for {
		page := must(container.ReadChangeFeed(ctx, &options))
		position = page.ContinuationToken
		options.Continuation = &position
		if len(page.Items) == 0 {
			return changes, position
		}
		most := int(options.MaxItemCount)
		check(most == 0 || len(page.Items) <= most, "a page of %d", len(page.Items))
		for _, item := range page.Items {
			var change document
			check(json.Unmarshal(item, &change) == nil, "no object: %s", item)
			changes = append(changes, change)
		}
	}
}

func feedAfter(container *azcosmos.ContainerClient, position string) ([]document, string) {
	return feed(container, azcosmos.ChangeFeedOptions{Continuation: &position})
}

func nothingNew(container *azcosmos.ContainerClient, position string) {
	changes, _ := feedAfter(container, position)
	check(len(changes) == 0, "%v", changes)
}

func (w *world) writer(name string) *writer {
	return &writer{container: w.createContainer(keyed(name, "/pk")), expected: versions{}}
}

func changeFeedFromTheBeginning(w *world) {
	writer := w.writer("changes")
	nothing, _ := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything})
	check(len(nothing) == 0, "%v", nothing)
	writer.writeSome(0)
	expected := writer.take()
	for _, size := range []int32{0, 100, 3, 1} {
		changes, _ := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything, MaxItemCount: size})
		checkChanges(changes, expected)
	}
}

func changeFeedGoesOnFromItsContinuation(w *world) {
	writer := w.writer("continued")
	writer.writeSome(0)
	changes, position := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything, MaxItemCount: 2})
	checkChanges(changes, writer.take())
	for _, first := range []int{10, 20} {
		writer.writeSome(first)
		changes, position = feedAfter(writer.container, position)
		checkChanges(changes, writer.take())
	}
	nothingNew(writer.container, position)
	// The delete of an item that was told before is no change in this mode.
	writer.delete(1)
	nothingNew(writer.container, position)
}

func changeFeedFromAPointInTime(w *world) {
	writer := w.writer("since")
	writer.writeSome(0)
	before := int64(writer.put(0, 3)["_ts"].(float64))
	// Times of changes are whole seconds; two of them leave one without a change in between.
	for int64(writer.put(0, 4)["_ts"].(float64)) < before+2 {
		time.Sleep(100 * time.Millisecond)
	}
	writer.take()
	writer.put(0, 5)
	writer.writeSome(20)
	start := time.Unix(before+1, 0)
	options := azcosmos.ChangeFeedOptions{FeedRange: &everything, StartFrom: &start, MaxItemCount: 4}
	changes, position := feed(writer.container, options)
	checkChanges(changes, writer.take())
	nothingNew(writer.container, position)
	writer.writeSome(1)
	changes, _ = feedAfter(writer.container, position)
	checkChanges(changes, writer.take())
}

func changeFeedOfOneKey(w *world) {
	container := must(w.database.NewContainer("continued"))
	whole, _ := feed(container, azcosmos.ChangeFeedOptions{FeedRange: &everything})
	for number := range keys {
		key := text(keyOf(number))
		// A key is asked for in the range that has it; this SDK does not look for that by itself.
		var changes []document
		for _, each := range must(container.ReadFeedRanges(ctx, nil)) {
			part, _ := feed(container, azcosmos.ChangeFeedOptions{FeedRange: &each, PartitionKey: &key, MaxItemCount: 2})
			changes = append(changes, part...)
		}
		ofKey := slices.DeleteFunc(slices.Clone(whole), func(each document) bool { return each["pk"] != keyOf(number) })
		check(len(changes) > 0 && fmt.Sprint(changes) == fmt.Sprint(ofKey), "%v instead of %v", changes, ofKey)
	}
}

func changeFeedOfFeedRanges(w *world) {
	writer := &writer{container: must(w.database.NewContainer("continued")), expected: versions{}}
	whole, _ := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything})
	ranges := must(writer.container.ReadFeedRanges(ctx, nil))
	check(len(ranges) == w.partitions, "%d ranges", len(ranges))
	var parts, more []document
	var positions []string
	for _, each := range ranges {
		part, position := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &each, MaxItemCount: 5})
		inOrder := slices.IsSortedFunc(part, func(a, b document) int { return int(a["_lsn"].(float64) - b["_lsn"].(float64)) })
		check(inOrder, "not in the order of commits: %v", part)
		parts, positions = append(parts, part...), append(positions, position)
	}
	byId := func(a, b document) int {
		return must(strconv.Atoi(a["id"].(string))) - must(strconv.Atoi(b["id"].(string)))
	}
	slices.SortFunc(whole, byId)
	slices.SortFunc(parts, byId)
	check(fmt.Sprint(parts) == fmt.Sprint(whole), "the ranges do not make up the whole")
	writer.writeSome(200)
	for _, position := range positions {
		changes, _ := feedAfter(writer.container, position)
		more = append(more, changes...)
	}
	checkChanges(more, writer.take())
}

// More throughput than the partitions can have makes the server split them all.
func changeFeedGoesOnThroughSplits(w *world) {
	writer := w.writer("splitting")
	_, position := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything})
	deadline := time.Now().Add(patience)
	for number, after := 0, 0; after < 2*keys; number++ {
		check(time.Now().Before(deadline), "no split")
		if number == keys {
			more := azcosmos.NewManualThroughputProperties(int32(10000*w.partitions + 1000))
			must(writer.container.ReplaceThroughput(ctx, more, nil))
		}
		writer.put(number%(2*keys), number)
		var changes []document
		changes, position = feedAfter(writer.container, position)
		checkChanges(changes, writer.take())
		if len(must(writer.container.ReadFeedRanges(ctx, nil))) > w.partitions {
			after++
		}
	}
	nothingNew(writer.container, position)
}

func changeFeedPositionIsKept(w *world) {
	writer := w.writer("followed")
	writer.writeSome(0)
	_, position := feed(writer.container, azcosmos.ChangeFeedOptions{FeedRange: &everything})
	for _, number := range []int{3, 1, 2} {
		writer.put(number, 7)
	}
	item := document{"id": "position", "deviceId": "followed", "position": position}
	must(w.container.UpsertItem(ctx, text("followed"), marshal(item), nil))
}

func verifyChangeFeedAfterRestart(w *world) {
	writer := &writer{container: must(w.database.NewContainer("followed")), expected: versions{}}
	kept := w.read(text("followed"), "position")["position"].(string)
	changes, position := feedAfter(writer.container, kept)
	missed := versions{}
	for number := 1; number <= 3; number++ {
		missed[keyOf(number)] = []version{{strconv.Itoa(number), 7}}
	}
	checkChanges(changes, missed)
	writer.writeSome(30)
	changes, position = feedAfter(writer.container, position)
	checkChanges(changes, writer.take())
	nothingNew(writer.container, position)
}
