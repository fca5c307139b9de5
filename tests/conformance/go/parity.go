package main

// What a program notices only when it moves to the service or from it: cases of the program.
// This SDK sends a query as it is and merges nothing, so the server must refuse what needs that.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func queriesThatNeedMergingAreRefused(w *world) {
	container := must(w.database.NewContainer("readings"))
	for _, query := range []string{
		"SELECT * FROM c ORDER BY c.metricValue", "SELECT TOP 3 * FROM c", "SELECT DISTINCT VALUE c.metricType FROM c",
		"SELECT VALUE COUNT(1) FROM c", "SELECT c.metricType, COUNT(1) AS many FROM c GROUP BY c.metricType",
		"SELECT * FROM c OFFSET 1 LIMIT 2",
	} {
		_, err := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil).NextPage(ctx)
		substatus := refused[azcosmos.QueryItemsResponse](400)(azcosmos.QueryItemsResponse{}, err)
		check(substatus == "1004", "substatus %q: %s", substatus, query)
		check(strings.Contains(err.Error(), "additionalErrorInfo"), "no plan: %s", query)
		page := must(container.NewQueryItemsPager(query, text("XMS-0001"), nil).NextPage(ctx))
		check(len(page.Items) > 0, "nothing under a key: %s", query)
	}
}

func numbersHaveOneForm(w *world) {
	written := `{"id":"numbers","deviceId":7.0,"n":[5.0,1e2,-0.0,2.50,12345678901234567890,9007199254740993,0.1]}`
	must(w.container.CreateItem(ctx, azcosmos.NewPartitionKeyNumber(7), []byte(written), nil))
	var read struct {
		N json.RawMessage `json:"n"`
	}
	response := must(w.container.ReadItem(ctx, azcosmos.NewPartitionKeyNumber(7), "numbers", nil))
	check(json.Unmarshal(response.Value, &read) == nil, "no object: %s", response.Value)
	check(string(read.N) == "[5,100,0,2.5,1.2345678901234567e19,9007199254740993,0.1]", "%s", read.N)
	var more azcosmos.PatchOperations
	more.AppendIncrement("/n/5", 1)
	response = must(w.container.PatchItem(ctx, azcosmos.NewPartitionKeyNumber(7), "numbers", more, withContent))
	check(strings.Contains(string(response.Value), ",9007199254740994,"), "%s", response.Value)
}

func theLastOfEqualNamesCounts(w *world) {
	item := func(key string) []byte {
		return []byte(`{"id":"no","deviceId":"other","n":1,"id":"twice","n":2,"deviceId":"` + key + `"}`)
	}
	must(w.container.CreateItem(ctx, text("named"), item("named"), nil))
	read := w.read(text("named"), "twice")
	check(read["n"] == 2.0 && read["deviceId"] == "named", "%v", read)
	itemRefused(400)(w.container.CreateItem(ctx, text("other"), item("named"), nil))
	itemRefused(404)(w.container.ReadItem(ctx, text("other"), "no", nil))
}

func bareTabsAndLineEndsComeBackEscaped(w *world) {
	item := []byte("{\"id\":\"blanks\",\"deviceId\":\"a\",\"text\":\"b\tc\r\nd\"}")
	response := must(w.container.CreateItem(ctx, text("a"), item, withContent))
	check(strings.Contains(string(response.Value), `"b\tc\r\nd"`), "%s", response.Value)
}

func idsWithSlashes(w *world) {
	for _, id := range []string{"a/b", `a\b`, "a?b", "a/../b?c#d"} {
		itemRefused(404)(w.container.ReadItem(ctx, text("odd"), id, nil))
		must(w.container.CreateItem(ctx, text("odd"), marshal(document{"id": id, "deviceId": "odd"}), nil))
		check(w.read(text("odd"), id)["id"] == id, "%q did not come back", id)
		query := "SELECT * FROM c WHERE c.id = @id"
		options := &azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: id}}}
		page := must(w.container.NewQueryItemsPager(query, text("odd"), options).NextPage(ctx))
		check(len(page.Items) == 1, "%d items %q", len(page.Items), id)
		must(w.container.DeleteItem(ctx, text("odd"), id, nil))
	}
}

func aParameterThatNobodyGaveIsUndefined(w *world) {
	query := "SELECT * FROM c WHERE NOT IS_DEFINED(@type) OR c.metricType = @type"
	rows, _ := w.query(query, text("XMS-0001"), nil)
	check(len(rows) == 12, "%d rows", len(rows))
}

func rowsWithoutASortValueComeFirst(w *world) {
	sorted := w.createContainer(keyed("sorted", "/pk"))
	for n := range 12 {
		item := document{"id": fmt.Sprint(n), "pk": "a"}
		if n%3 > 0 {
			item["n"] = n
		}
		must(sorted.CreateItem(ctx, text("a"), marshal(item), nil))
	}
	for query, expected := range map[string]string{
		"SELECT VALUE c.n ?? -1 FROM c ORDER BY c.n":      "[-1 -1 -1 -1 1 2 4 5 7 8 10 11]",
		"SELECT VALUE c.n ?? -1 FROM c ORDER BY c.n DESC": "[11 10 8 7 5 4 2 1 -1 -1 -1 -1]",
	} {
		var rows []string
		for pager := sorted.NewQueryItemsPager(query, text("a"), &azcosmos.QueryOptions{PageSizeHint: 3}); pager.More(); {
			for _, item := range must(pager.NextPage(ctx)).Items {
				rows = append(rows, string(item))
			}
		}
		check(fmt.Sprint(rows) == expected, "%s: %v", query, rows)
	}
}

// noBodiesOfABatchWhenNotWanted has no read among the operations: with one this SDK asks for all bodies.
func noBodiesOfABatchWhenNotWanted(w *world) {
	for _, wanted := range []bool{false, true} {
		batch := w.container.NewTransactionalBatch(text("batch"))
		batch.UpsertItem(marshal(document{"id": "quiet", "deviceId": "batch"}), nil)
		options := &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: wanted}
		done := must(w.container.ExecuteTransactionalBatch(ctx, batch, options))
		given := len(done.OperationResults[0].ResourceBody) > 0
		check(given == wanted, "a body is wanted: %t, given: %t", wanted, given)
	}
}

func aBatchThatHasSeenMoreIsToldSo(w *world) {
	written := must(w.container.UpsertItem(ctx, text("ahead"), marshal(document{"id": "1", "deviceId": "ahead"}), nil))
	partition, _, _ := strings.Cut(*written.SessionToken, "#")
	batch := w.container.NewTransactionalBatch(text("ahead"))
	batch.ReadItem("1", nil)
	options := &azcosmos.TransactionalBatchOptions{SessionToken: partition + "#999999999"}
	_, err := w.container.ExecuteTransactionalBatch(ctx, batch, options)
	var refusal *azcore.ResponseError
	check(errors.As(err, &refusal) && refusal.StatusCode == 404, "not refused with 404: %v", err)
	check(refusal.RawResponse.Header.Get("x-ms-substatus") == "1002", "another refusal: %v", err)
}

func theAnswerOfABatchIsBounded(w *world) {
	large := strings.Repeat("x", 2_000_000)
	batch := w.container.NewTransactionalBatch(text("large"))
	for n := range 12 {
		id := fmt.Sprint(n)
		must(w.container.CreateItem(ctx, text("large"), marshal(document{"id": id, "deviceId": "large", "x": large}), nil))
		batch.ReadItem(id, nil)
	}
	failed := must(w.container.ExecuteTransactionalBatch(ctx, batch, nil))
	counts := map[int32]int{}
	for _, status := range statuses(failed) {
		counts[status]++
	}
	check(!failed.Success && counts[413] == 1 && counts[424] == 11, "%v", statuses(failed))
}
