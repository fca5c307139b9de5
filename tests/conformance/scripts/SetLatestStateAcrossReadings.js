// Makes one reading of a device the latest of its metric and all others outdated, in one
// transaction. Returns the id of the latest one, or null if there is no such reading, and how
// many became outdated.
function SetLatestStateAcrossReadings(readingId) {
    var collection = getContext().getCollection();
    var outdated = 0;

    var accepted = collection.readDocument(collection.getAltLink() + "/docs/" + readingId, function (error, reading) {
        if (error && error.number === ErrorCodes.NotFound) return finish(null);
        if (error) throw error;
        set(reading, true, function () { outdateOthers(reading); });
    });
    require(accepted);

    function outdateOthers(latest, continuation) {
        var query = {
            query: "SELECT * FROM r WHERE r.metricType = @metric AND r.id != @id AND r.isLatest = true",
            parameters: [{ name: "@metric", value: latest.metricType }, { name: "@id", value: latest.id }]
        };
        var options = { pageSize: 100, continuation: continuation };
        require(collection.queryDocuments(collection.getSelfLink(), query, options, function (error, readings, info) {
            if (error) throw error;
            outdateEach(readings, 0, function () {
                if (info.continuation) outdateOthers(latest, info.continuation);
                else finish(latest.id);
            });
        }));
    }

    function outdateEach(readings, at, done) {
        if (at === readings.length) return done();
        set(readings[at], false, function () {
            outdated += 1;
            outdateEach(readings, at + 1, done);
        });
    }

    function set(reading, isLatest, done) {
        reading.isLatest = isLatest;
        require(collection.replaceDocument(reading._self, reading, { etag: reading._etag }, function (error) {
            if (error) throw error;
            done();
        }));
    }

    function finish(latest) {
        getContext().getResponse().setBody({ latest: latest, outdated: outdated });
    }

    function require(accepted) {
        if (!accepted) throw new Error("There are more readings than one call can change.");
    }
}
