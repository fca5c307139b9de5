// The official Go SDK, unmodified, against a running Orrery.
//
// Usage: conformance ENDPOINT KEY PARTITIONS [write|verify]
//
// `write` runs everything and leaves some items behind; `verify` runs after a
// restart and expects them. Each case prints `ok NAME` or `FAILED NAME: why`, and
// the last line counts them. Over https the SDK trusts the certificate in the file
// that the variable SSL_CERT_FILE names. A case stops by a panic at the first thing
// that does not hold, which keeps the calls to the SDK in view.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Items that `write` leaves and `verify` expects.
const kept = 50

// A world is what the cases share: one client, the articles' database and container.
type world struct {
	endpoint   string
	key        string
	client     *azcosmos.Client
	database   *azcosmos.DatabaseClient
	container  *azcosmos.ContainerClient
	partitions int
	throughput int32
}

// A document as programs without types of their own see it.
type document = map[string]any

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(holds bool, format string, arguments ...any) {
	if !holds {
		panic(fmt.Errorf(format, arguments...))
	}
}

// refused demands that a request failed with this status, and gives back its sub-status.
func refused[T any](status int) func(T, error) string {
	return func(_ T, err error) string {
		var refusal *azcore.ResponseError
		check(err != nil, "not refused with %d", status)
		check(errors.As(err, &refusal), "not a refusal: %v", err)
		check(refusal.StatusCode == status, "%d instead of %d: %v", refusal.StatusCode, status, err)
		return refusal.RawResponse.Header.Get("x-ms-substatus")
	}
}

var (
	itemRefused      = refused[azcosmos.ItemResponse]
	containerRefused = refused[azcosmos.ContainerResponse]
)

func marshal(value any) []byte {
	return must(json.Marshal(value))
}

func text(value string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(value)
}

func (w *world) read(key azcosmos.PartitionKey, id string) document {
	return content(must(w.container.ReadItem(ctx, key, id, nil)))
}

func content(response azcosmos.ItemResponse) document {
	var read document
	if err := json.Unmarshal(response.Value, &read); err != nil {
		panic(err)
	}
	return read
}

func (w *world) createContainer(properties azcosmos.ContainerProperties) *azcosmos.ContainerClient {
	throughput := azcosmos.NewManualThroughputProperties(w.throughput)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
	must(w.database.CreateContainer(ctx, properties, options))
	return must(w.database.NewContainer(properties.ID))
}

func keyed(id string, paths ...string) azcosmos.ContainerProperties {
	kind := azcosmos.PartitionKeyKindHash
	if len(paths) > 1 {
		kind = azcosmos.PartitionKeyKindMultiHash
	}
	definition := azcosmos.PartitionKeyDefinition{Paths: paths, Kind: kind, Version: 2}
	return azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: definition}
}

// withContent asks for the written item in the answer, which this SDK leaves out otherwise.
var withContent = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}

func reading(value float64) []byte {
	return marshal(document{
		"id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricType": "Temperature", "metricValue": value,
		"unit": "Fahrenheit", "readingTime": "2026-11-15T10:00:00Z",
	})
}

func sample1CreateDatabase(w *world) {
	name := azcosmos.DatabaseProperties{ID: w.database.ID()}
	created := must(w.client.CreateDatabase(ctx, name, nil))
	check(created.DatabaseProperties.ID == name.ID && created.DatabaseProperties.ResourceID != "", "another database")
	check(must(w.database.Read(ctx, nil)).DatabaseProperties.ID == name.ID, "another database is read")
	refused[azcosmos.DatabaseResponse](409)(w.client.CreateDatabase(ctx, name, nil))
}

func sample2CreateContainerWithKeyAndThroughput(w *world) {
	properties := must(w.createContainer(keyed("coll", "/deviceId")).Read(ctx, nil)).ContainerProperties
	check(slices.Equal(properties.PartitionKeyDefinition.Paths, []string{"/deviceId"}), "another key")
	mode := string(properties.IndexingPolicy.IndexingMode)
	check(strings.EqualFold(mode, string(azcosmos.IndexingModeConsistent)), "indexing mode %s", mode)
	ranges := must(w.container.ReadFeedRanges(ctx, nil))
	check(len(ranges) == w.partitions, "%d ranges", len(ranges))
	check(ranges[0].MinInclusive == "" && ranges[len(ranges)-1].MaxExclusive == "FF", "the ranges leave a gap")
}

func sample3CreateItem(w *world) {
	created := content(must(w.container.CreateItem(ctx, text("XMS-0001"), reading(105), withContent)))
	check(created["metricValue"] == 105.0, "another value")
	for _, name := range []string{"_rid", "_etag", "_ts", "_self"} {
		check(created[name] != nil, "no %s", name)
	}
	itemRefused(409)(w.container.CreateItem(ctx, text("XMS-0001"), reading(105), nil))
}

func sample4ReadByKeyAndId(w *world) {
	read := w.read(text("XMS-0001"), "XMS-001-FE24C")
	check(read["metricType"] == "Temperature" && read["metricValue"] == 105.0, "another item: %v", read)
	itemRefused(404)(w.container.ReadItem(ctx, text("XMS-0002"), "XMS-001-FE24C", nil))
	itemRefused(404)(w.container.ReadItem(ctx, text("XMS-0001"), "nothing", nil))
}

func sample5Replace(w *world) {
	replaced := must(w.container.ReplaceItem(ctx, text("XMS-0001"), "XMS-001-FE24C", reading(104), nil))
	check(len(replaced.Value) == 0 && replaced.ETag != "", "a body that nobody asked for")
	check(w.read(text("XMS-0001"), "XMS-001-FE24C")["metricValue"] == 104.0, "the value was not replaced")
	missing := marshal(document{"id": "nothing", "deviceId": "x"})
	itemRefused(404)(w.container.ReplaceItem(ctx, text("x"), "nothing", missing, nil))
}

func sample6Delete(w *world) {
	must(w.container.DeleteItem(ctx, text("XMS-0001"), "XMS-001-FE24C", nil))
	itemRefused(404)(w.container.ReadItem(ctx, text("XMS-0001"), "XMS-001-FE24C", nil))
	itemRefused(404)(w.container.DeleteItem(ctx, text("XMS-0001"), "XMS-001-FE24C", nil))
}

// readings are those of ten devices, every second one a temperature.
func readings() (all []document) {
	for device := 1; device <= 10; device++ {
		for n := range 12 {
			kind := []string{"Temperature", "Humidity"}[n%2]
			all = append(all, document{
				"id": fmt.Sprintf("%d-%d", device, n), "deviceId": fmt.Sprintf("XMS-%04d", device),
				"metricType": kind, "metricValue": 80 + (device*37+n*11)%50,
			})
		}
	}
	return all
}

const hotOnes = `SELECT * FROM root WHERE root["metricType"] = "Temperature" AND root["metricValue"] > 100`

// hot are the ids of those that hotOnes asks for, from the coolest.
func hot() (ids []string) {
	chosen := slices.DeleteFunc(readings(), func(each document) bool {
		return each["metricType"] != "Temperature" || each["metricValue"].(int) <= 100
	})
	slices.SortStableFunc(chosen, func(a, b document) int { return a["metricValue"].(int) - b["metricValue"].(int) })
	for _, each := range chosen {
		ids = append(ids, each["id"].(string))
	}
	return ids
}

// query gives the rows of a query and the number of partitions that answered it, which its session token names.
func (w *world) query(query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) (rows []document, asked int) {
	return w.queryIn(ctx, query, key, options)
}

func (w *world) queryIn(
	ctx context.Context, query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions,
) (rows []document, asked int) {
	container := must(w.database.NewContainer("readings"))
	ranges := map[string]bool{}
	for pager := container.NewQueryItemsPager(query, key, options); pager.More(); {
		page := must(pager.NextPage(ctx))
		for _, item := range page.Items {
			var row document
			check(json.Unmarshal(item, &row) == nil, "no object: %s", item)
			rows = append(rows, row)
		}
		for _, token := range strings.Split(page.RawResponse.Header.Get("x-ms-session-token"), ",") {
			ranges[strings.Split(token, ":")[0]] = true
		}
	}
	return rows, len(ranges)
}

func ids(rows []document) (ids []string) {
	for _, row := range rows {
		ids = append(ids, row["id"].(string))
	}
	return ids
}

func sample7QueryByKeyAsksOnePartition(w *world) {
	container := w.createContainer(keyed("readings", "/deviceId"))
	for _, each := range readings() {
		must(container.CreateItem(ctx, text(each["deviceId"].(string)), marshal(each), nil))
	}
	options := &azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{
		{Name: "@type", Value: "Temperature"}, {Name: "@device", Value: "XMS-0001"},
	}}
	query := `SELECT * FROM root WHERE root["metricType"] = @type AND root["deviceId"] = @device`
	for _, key := range []azcosmos.PartitionKey{azcosmos.NewPartitionKey(), text("XMS-0001")} {
		rows, asked := w.query(query, key, options)
		check(len(rows) == 6 && asked == 1, "%d rows of %d partitions", len(rows), asked)
	}
}

func sample8QueryAcrossPartitions(w *world) {
	rows, asked := w.query(hotOnes, azcosmos.NewPartitionKey(), nil)
	found, expected := ids(rows), hot()
	slices.Sort(found)
	slices.Sort(expected)
	check(slices.Equal(found, expected), "%v", found)
	check(asked == w.partitions, "asked %d", asked)
}

// This SDK merges nothing, so the service's gateway refuses a query that would have to be, on any number of
// partitions. Whoever names a key is answered, and so is whoever asks this server for the one answer of all.
func sample9QueryInOrder(w *world) {
	query := hotOnes + ` ORDER BY root["metricValue"]`
	container := must(w.database.NewContainer("readings"))
	for _, text := range []string{query, "SELECT VALUE COUNT(1) FROM c", "SELECT TOP 1 * FROM c"} {
		pager := container.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), nil)
		_, err := pager.NextPage(ctx)
		var refusal *azcore.ResponseError
		check(errors.As(err, &refusal) && refusal.StatusCode == 400, "%s: %v", text, err)
		check(refusal.RawResponse.Header.Get("x-ms-substatus") == "1004", "%s: %v", text, err)
	}
	value := func(a, b document) int { return int(a["metricValue"].(float64) - b["metricValue"].(float64)) }
	keyed, asked := w.query(query, text("XMS-0001"), nil)
	check(slices.IsSortedFunc(keyed, value) && asked == 1, "%v of %d partitions", ids(keyed), asked)
	merged := policy.WithHTTPHeader(ctx, http.Header{"X-Orrery-Query-Merge": {"true"}})
	whole, _ := w.queryIn(merged, query, azcosmos.NewPartitionKey(), nil)
	paged, _ := w.queryIn(merged, query, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 3})
	check(slices.Equal(ids(whole), ids(paged)), "pages change the order")
	check(slices.IsSortedFunc(whole, value) && len(whole) == len(hot()), "%v", ids(whole))
}

func upsertCreatesAndReplaces(w *world) {
	for n, status := range []int{201, 200} {
		item := marshal(document{"id": "up", "deviceId": "u", "n": n})
		response := must(w.container.UpsertItem(ctx, text("u"), item, withContent))
		check(response.RawResponse.StatusCode == status, "status %d", response.RawResponse.StatusCode)
		check(content(response)["n"] == float64(n), "another item")
	}
}

func sameIdUnderTwoKeys(w *world) {
	for _, key := range []string{"a", "b"} {
		must(w.container.CreateItem(ctx, text(key), marshal(document{"id": "same", "deviceId": key}), nil))
	}
	for _, key := range []string{"a", "b"} {
		check(w.read(text(key), "same")["deviceId"] == key, "another item under %s", key)
	}
}

// Not among the keys: characters beyond U+FFFF, for which this SDK sends an escape that is no JSON.
func everyTypeOfKey(w *world) {
	keys := []struct {
		key   azcosmos.PartitionKey
		value any
	}{
		{text("text"), "text"}, {text(""), ""}, {text("ünï"), "ünï"}, {text(`a/b\c"d`), `a/b\c"d`},
		{azcosmos.NewPartitionKeyNumber(1), 1.0}, {azcosmos.NewPartitionKeyNumber(-3.5), -3.5},
		{azcosmos.NewPartitionKeyBool(true), true}, {azcosmos.NewPartitionKeyBool(false), false},
		{azcosmos.NullPartitionKey, nil},
	}
	for n, each := range keys {
		id := fmt.Sprintf("key%d", n)
		must(w.container.CreateItem(ctx, each.key, marshal(document{"id": id, "deviceId": each.value}), nil))
		check(w.read(each.key, id)["deviceId"] == each.value, "%v did not come back", each.value)
	}
}

func oddIds(w *world) {
	for _, id := range []string{"with space", "plus+", "per%cent", `quote'"`, "ünï", "semi;colon", "a.b", "(1)"} {
		must(w.container.UpsertItem(ctx, text("odd"), marshal(document{"id": id, "deviceId": "odd"}), nil))
		check(w.read(text("odd"), id)["id"] == id, "%q did not come back", id)
		must(w.container.DeleteItem(ctx, text("odd"), id, nil))
	}
}

func etagsGuardWrites(w *world) {
	item := func(n int) []byte { return marshal(document{"id": "guarded", "deviceId": "e", "n": n}) }
	created := must(w.container.CreateItem(ctx, text("e"), item(1), nil))
	seen := &azcosmos.ItemOptions{IfMatchEtag: &created.ETag}
	must(w.container.ReplaceItem(ctx, text("e"), "guarded", item(2), seen))
	itemRefused(412)(w.container.ReplaceItem(ctx, text("e"), "guarded", item(3), seen))
	itemRefused(412)(w.container.UpsertItem(ctx, text("e"), item(3), seen))
	itemRefused(412)(w.container.DeleteItem(ctx, text("e"), "guarded", seen))
	check(w.read(text("e"), "guarded")["n"] == 2.0, "a refused write was made")
}

func patchEveryOperation(w *world) {
	item := document{"id": "p", "deviceId": "p", "n": 1, "list": []int{1, 3}, "gone": 1}
	must(w.container.CreateItem(ctx, text("p"), marshal(item), nil))
	var every azcosmos.PatchOperations
	every.AppendAdd("/list/1", 2)
	every.AppendSet("/new", document{"deep": true})
	every.AppendReplace("/n", 5)
	every.AppendRemove("/gone")
	every.AppendIncrement("/n", 2)
	patched := content(must(w.container.PatchItem(ctx, text("p"), "p", every, withContent)))
	check(fmt.Sprint(patched["list"], patched["n"], patched["new"], patched["gone"]) == "[1 2 3] 7 map[deep:true] <nil>",
		"patched to %v", patched)
	var zero azcosmos.PatchOperations
	zero.AppendSet("/n", 0)
	zero.SetCondition("from c where c.n = 1")
	itemRefused(412)(w.container.PatchItem(ctx, text("p"), "p", zero, nil))
	zero.SetCondition("from c where c.n = 7")
	check(content(must(w.container.PatchItem(ctx, text("p"), "p", zero, withContent)))["n"] == 0.0, "not patched")
	itemRefused(404)(w.container.PatchItem(ctx, text("p"), "nothing", zero, nil))
	var key, missing azcosmos.PatchOperations
	key.AppendSet("/deviceId", "q")
	itemRefused(400)(w.container.PatchItem(ctx, text("p"), "p", key, nil))
	missing.AppendRemove("/nothing")
	itemRefused(400)(w.container.PatchItem(ctx, text("p"), "p", missing, nil))
}

func batchIsAllOrNothing(w *world) {
	item := func(id string) []byte { return marshal(document{"id": id, "deviceId": "batch", "n": 1}) }
	batch := w.container.NewTransactionalBatch(text("batch"))
	batch.CreateItem(item("b1"), nil)
	batch.UpsertItem(item("b2"), nil)
	batch.ReplaceItem("b2", item("b2"), nil)
	var more azcosmos.PatchOperations
	more.AppendIncrement("/n", 1)
	batch.PatchItem("b1", more, nil)
	batch.ReadItem("b1", nil)
	batch.DeleteItem("b2", nil)
	done := must(w.container.ExecuteTransactionalBatch(ctx, batch, nil))
	check(done.Success && fmt.Sprint(statuses(done)) == "[201 201 200 200 200 204]", "%v", statuses(done))
	var read document
	check(json.Unmarshal(done.OperationResults[4].ResourceBody, &read) == nil && read["n"] == 2.0, "read %v", read)

	again := w.container.NewTransactionalBatch(text("batch"))
	again.CreateItem(item("b3"), nil)
	again.CreateItem(item("b1"), nil)
	failed := must(w.container.ExecuteTransactionalBatch(ctx, again, nil))
	check(!failed.Success && fmt.Sprint(statuses(failed)) == "[424 409]", "%v", statuses(failed))
	itemRefused(404)(w.container.ReadItem(ctx, text("batch"), "b3", nil))
}

func statuses(response azcosmos.TransactionalBatchResponse) (statuses []int32) {
	for _, result := range response.OperationResults {
		statuses = append(statuses, result.StatusCode)
	}
	return statuses
}

func wrongItemsAreRefused(w *world) {
	create := func(key string, item document) (azcosmos.ItemResponse, error) {
		return w.container.CreateItem(ctx, text(key), marshal(item), nil)
	}
	itemRefused(413)(create("x", document{"id": "large", "deviceId": "x", "text": strings.Repeat("x", 2<<20)}))
	itemRefused(400)(create("x", document{"id": "", "deviceId": "x"}))
	itemRefused(400)(create("x", document{"id": "ttl", "deviceId": "x", "ttl": 0}))
	substatus := itemRefused(400)(create("x", document{"id": "elsewhere", "deviceId": "y"}))
	check(substatus == "1001", "substatus %q for a key that does not match", substatus)
	nowhere := must(w.database.NewContainer("nowhere"))
	substatus = itemRefused(404)(nowhere.ReadItem(ctx, text("x"), "x", nil))
	check(substatus == "1003", "substatus %q where there is no container", substatus)
}

func hierarchicalKeys(w *world) {
	tree := w.createContainer(keyed("tree", "/tenant", "/user", "/session"))
	key := text("t").AppendString("u").AppendNumber(7)
	must(tree.CreateItem(ctx, key, marshal(document{"id": "1", "tenant": "t", "user": "u", "session": 7}), nil))
	check(content(must(tree.ReadItem(ctx, key, "1", nil)))["user"] == "u", "another item")
	itemRefused(404)(tree.ReadItem(ctx, text("t").AppendString("v").AppendNumber(7), "1", nil))
	batch := tree.NewTransactionalBatch(key)
	batch.DeleteItem("1", nil)
	check(must(tree.ExecuteTransactionalBatch(ctx, batch, nil)).Success, "no batch under a hierarchical key")
}

func timeToLive(w *world) {
	properties := keyed("mortal", "/pk")
	seconds := int32(3600)
	properties.DefaultTimeToLive = &seconds
	mortal := w.createContainer(properties)
	read := must(mortal.Read(ctx, nil)).ContainerProperties
	check(*read.DefaultTimeToLive == seconds, "another time to live")
	*read.DefaultTimeToLive = -1
	check(*must(mortal.Replace(ctx, *read, nil)).ContainerProperties.DefaultTimeToLive == -1, "it was not replaced")
	*read.DefaultTimeToLive = 0
	containerRefused(400)(mortal.Replace(ctx, *read, nil))
	for _, item := range []document{{"id": "brief", "pk": "a", "ttl": 1}, {"id": "lasting", "pk": "a"}} {
		must(mortal.CreateItem(ctx, text("a"), marshal(item), nil))
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, err := mortal.ReadItem(ctx, text("a"), "brief", nil); err != nil {
			itemRefused(404)(azcosmos.ItemResponse{}, err)
			break
		}
		check(time.Now().Before(deadline), "an item outlived its second by a minute")
	}
	must(mortal.ReadItem(ctx, text("a"), "lasting", nil))
}

func containersLiveAndChange(w *world) {
	properties := keyed("life", "/pk")
	properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
	life := w.createContainer(properties)
	create := func(id, pk string) (azcosmos.ItemResponse, error) {
		return life.CreateItem(ctx, text(pk), marshal(document{"id": id, "pk": pk, "email": "x"}), nil)
	}
	must(create("1", "a"))
	itemRefused(409)(create("2", "a"))
	must(create("2", "b"))
	changed := must(life.Read(ctx, nil)).ContainerProperties
	changed.IndexingPolicy.ExcludedPaths = append(changed.IndexingPolicy.ExcludedPaths, azcosmos.ExcludedPath{Path: "/email/?"})
	replaced := must(life.Replace(ctx, *changed, nil)).ContainerProperties
	check(slices.Contains(replaced.IndexingPolicy.ExcludedPaths, azcosmos.ExcludedPath{Path: "/email/?"}), "not excluded")
	changed.PartitionKeyDefinition.Paths = []string{"/other"}
	containerRefused(400)(life.Replace(ctx, *changed, nil))
	check(slices.Contains(w.containers(), "life"), "not listed")
	must(life.Delete(ctx, nil))
	containerRefused(404)(life.Read(ctx, nil))
	check(!slices.Contains(w.containers(), "life"), "still listed")
}

// containers lists by the only way that this SDK has, a query.
func (w *world) containers() (names []string) {
	pager := w.database.NewQueryContainersPager("SELECT * FROM c", nil)
	for pager.More() {
		for _, each := range must(pager.NextPage(ctx)).Containers {
			names = append(names, each.ID)
		}
	}
	return names
}

func databasesAreListed(w *world) {
	byName := "SELECT * FROM c WHERE c.id = @id"
	options := &azcosmos.QueryDatabasesOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: w.database.ID()}}}
	page := must(w.client.NewQueryDatabasesPager(byName, options).NextPage(ctx))
	check(len(page.Databases) == 1 && page.Databases[0].ID == w.database.ID(), "%d databases", len(page.Databases))
}

func headersTellTheTruth(w *world) {
	lsn := func() int {
		response := must(w.container.UpsertItem(ctx, text("h"), marshal(document{"id": "h", "deviceId": "h"}), nil))
		check(response.RequestCharge > 1 && response.ActivityID != "", "no charge or activity")
		_, lsn, _ := strings.Cut(*response.SessionToken, "#")
		return must(strconv.Atoi(lsn))
	}
	first, second := lsn(), lsn()
	check(first > 0 && second > first, "LSN %d, then %d", first, second)
}

func throughputIsReadAndReplaced(w *world) {
	manual := func() int32 {
		throughput, _ := must(w.container.ReadThroughput(ctx, nil)).ThroughputProperties.ManualThroughput()
		return throughput
	}
	check(manual() == w.throughput, "%d instead of %d", manual(), w.throughput)
	more := azcosmos.NewManualThroughputProperties(w.throughput + 100)
	must(w.container.ReplaceThroughput(ctx, more, nil))
	check(manual() == w.throughput+100, "it was not replaced")
	odd := azcosmos.NewManualThroughputProperties(450)
	refused[azcosmos.ThroughputResponse](400)(w.container.ReplaceThroughput(ctx, odd, nil))
}

func autoscaleIsReadAndReplaced(w *world) {
	wanted := azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(5000, 2)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &wanted}
	must(w.database.CreateContainer(ctx, keyed("scaling", "/pk"), options))
	scaling := must(w.database.NewContainer("scaling"))
	most, _ := must(scaling.ReadThroughput(ctx, nil)).ThroughputProperties.AutoscaleMaxThroughput()
	check(most == 5000, "at most %d", most)
	must(scaling.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(7000), nil))
	most, _ = must(scaling.ReadThroughput(ctx, nil)).ThroughputProperties.AutoscaleMaxThroughput()
	check(most == 7000, "it was not replaced but is %d", most)
}

func wrongKeysAreRefused(w *world) {
	credential := must(azcosmos.NewKeyCredential("d3Jvbmcgd3Jvbmcgd3Jvbmc="))
	client := must(azcosmos.NewClientWithKey(w.endpoint, credential, nil))
	database := must(client.NewDatabase(w.database.ID()))
	refused[azcosmos.DatabaseResponse](401)(database.Read(ctx, nil))
}

func whatWasWrittenStays(w *world) {
	container := w.createContainer(keyed("kept", "/pk"))
	for n := range kept {
		item := document{"id": strconv.Itoa(n), "pk": strconv.Itoa(n % 7), "n": n}
		must(container.CreateItem(ctx, text(strconv.Itoa(n%7)), marshal(item), nil))
	}
}

func verifyAfterRestart(w *world) {
	container := must(w.database.NewContainer("kept"))
	for n := range kept {
		read := content(must(container.ReadItem(ctx, text(strconv.Itoa(n%7)), strconv.Itoa(n), nil)))
		check(read["n"] == float64(n), "item %d is another", n)
	}
	throughput, _ := must(w.container.ReadThroughput(ctx, nil)).ThroughputProperties.ManualThroughput()
	check(throughput == w.throughput+100, "the throughput is %d", throughput)
}

var cases = []func(*world){
	sample1CreateDatabase,
	sample2CreateContainerWithKeyAndThroughput,
	sample3CreateItem,
	sample4ReadByKeyAndId,
	sample5Replace,
	sample6Delete,
	sample7QueryByKeyAsksOnePartition,
	sample8QueryAcrossPartitions,
	sample9QueryInOrder,
	upsertCreatesAndReplaces,
	sameIdUnderTwoKeys,
	everyTypeOfKey,
	oddIds,
	etagsGuardWrites,
	patchEveryOperation,
	batchIsAllOrNothing,
	wrongItemsAreRefused,
	hierarchicalKeys,
	timeToLive,
	containersLiveAndChange,
	databasesAreListed,
	headersTellTheTruth,
	throughputIsReadAndReplaced,
	autoscaleIsReadAndReplaced,
	wrongKeysAreRefused,
	changeFeedFromTheBeginning,
	changeFeedGoesOnFromItsContinuation,
	changeFeedFromAPointInTime,
	changeFeedOfOneKey,
	changeFeedOfFeedRanges,
	changeFeedGoesOnThroughSplits,
	changeFeedPositionIsKept,
	queriesThatNeedMergingAreRefused,
	numbersHaveOneForm,
	theLastOfEqualNamesCounts,
	bareTabsAndLineEndsComeBackEscaped,
	idsWithSlashes,
	aParameterThatNobodyGaveIsUndefined,
	rowsWithoutASortValueComeFirst,
	noBodiesOfABatchWhenNotWanted,
	aBatchThatHasSeenMoreIsToldSo,
	theAnswerOfABatchIsBounded,
	rowsComeAsTheirItemsWereCreated,
	rowsKeepTheirOrderThroughSplitsAndMerges,
	whatWasWrittenStays,
}

// run runs one case under the name of its function and says whether it passed.
func run(each func(*world), w *world) (passed bool) {
	name := strings.TrimPrefix(runtime.FuncForPC(reflect.ValueOf(each).Pointer()).Name(), "main.")
	defer func() {
		if failure := recover(); failure != nil {
			why := strings.ReplaceAll(fmt.Sprint(failure), "\n", " ")
			fmt.Printf("FAILED %s: %.400s\n", name, why)
		}
	}()
	each(w)
	fmt.Println("ok", name)
	return true
}

func connect(endpoint, key string, partitions int) *world {
	client := must(azcosmos.NewClientWithKey(endpoint, must(azcosmos.NewKeyCredential(key)), nil))
	database := must(client.NewDatabase(fmt.Sprintf("go%d", partitions)))
	w := &world{
		endpoint: endpoint, key: key, client: client, database: database, partitions: partitions, throughput: 400,
	}
	if partitions > 1 {
		w.throughput = 6000 * int32(partitions)
	}
	w.container = must(database.NewContainer("coll"))
	return w
}

func main() {
	w := connect(os.Args[1], os.Args[2], must(strconv.Atoi(os.Args[3])))
	chosen := cases
	if len(os.Args) > 4 && os.Args[4] == "verify" {
		chosen = []func(*world){verifyAfterRestart, verifyChangeFeedAfterRestart, verifyOrderAfterRestart}
	}
	passed := 0
	for _, each := range chosen {
		if run(each, w) {
			passed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, len(chosen)-passed)
	if passed != len(chosen) {
		os.Exit(1)
	}
}
