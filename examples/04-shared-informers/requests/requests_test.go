// SPDX-License-Identifier: Apache-2.0

package requests

import "testing"

func TestOnlyRequestsForPodsOfANamespaceCount(t *testing.T) {
	t.Parallel()
	got := parse(`# HELP apiserver_request_total Counter of apiserver requests.
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 900
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{component="apiserver",group="",resource="secrets",scope="namespace",subresource="",verb="WATCH",version="v1"} 900
apiserver_request_duration_seconds_sum{component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 0.25
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 10
apiserver_request_total{code="403",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="DELETE",version="v1"} 900
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 20
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 900
apiserver_watch_list_duration_seconds_sum{group="",resource="pods",scope="namespace",version="v1"} 0.5
apiserver_watch_list_duration_seconds_count{group="",resource="pods",scope="namespace",version="v1"} 3
apiserver_watch_list_duration_seconds_count{group="",resource="pods",scope="cluster",version="v1"} 900
`)
	if want := (Count{Lists: 11, Watches: 22, Streams: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
