// SPDX-License-Identifier: Apache-2.0

// Package requests counts requests for pods, by the API server's own metrics.
package requests

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Count is how many requests for the pods of some one namespace the API server has counted, whoever sent them. A
// stream is a watch that begins with what a list would give; it is among the watches.
type Count struct{ Lists, Watches, Streams int }

// Now reads the count from the API server's metrics.
func Now(ctx context.Context, server rest.Interface) (Count, error) {
	metrics, err := server.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return Count{}, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return parse(string(metrics)), nil
}

// Since waits until so many informers have been given a list and have begun to watch, but no longer than ten seconds,
// and returns what was counted since an earlier count. A watch that follows a list begins after its cache is filled.
func Since(ctx context.Context, server rest.Interface, before Count, informers int) (since Count, err error) {
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := Now(ctx, server)
		since = Count{now.Lists - before.Lists, now.Watches - before.Watches, now.Streams - before.Streams}
		return since.Lists+since.Streams >= informers && since.Watches >= informers, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // another API server has counted them, or others have ended as many; what was counted is still that
	}
	return since, err
}

// parse adds up the counters, of which there is one for each HTTP status. A watch is in request_total once it has ended,
// and in longrunning_requests until then.
func parse(metrics string) Count {
	var count Count
	for line := range strings.Lines(metrics) {
		name, labels, _ := strings.Cut(line, "{")
		labels, number, _ := strings.Cut(labels, "} ")
		if !strings.Contains(labels, `resource="pods",scope="namespace",`) {
			continue
		}
		value, err := strconv.Atoi(strings.TrimSpace(number))
		isList, isWatch := strings.Contains(labels, `verb="LIST"`), strings.Contains(labels, `verb="WATCH"`)
		switch {
		case err != nil: // a measured time
		case name == "apiserver_request_total" && isList:
			count.Lists += value
		case name == "apiserver_request_total" && isWatch, name == "apiserver_longrunning_requests" && isWatch:
			count.Watches += value
		case name == "apiserver_watch_list_duration_seconds_count":
			count.Streams += value
		}
	}
	return count
}
