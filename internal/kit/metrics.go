// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/workqueue"
)

// Metrics are what the operator counts about itself, in a registry of its own.
type Metrics struct {
	registry *prometheus.Registry

	syncs        *prometheus.CounterVec
	syncSeconds  *prometheus.HistogramVec
	requests     *prometheus.CounterVec
	requestTimes *prometheus.HistogramVec

	leading prometheus.Gauge

	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

// NewMetrics returns metrics that have counted nothing yet.
func NewMetrics() *Metrics {
	byQueue := []string{"name"}
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		syncs:        counter("controller_syncs_total", "Syncs, by outcome.", "controller", "result"),
		syncSeconds:  histogram("controller_sync_duration_seconds", "How long a sync took.", "controller"),
		requests:     counter("kubernetes_client_requests_total", "Requests to the API server, by status code; error if none came.", "method", "code"),
		requestTimes: histogram("kubernetes_client_request_duration_seconds", "How long the API server took for its first byte.", "method"),
		leading:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "leader", Help: "Whether this process holds the leader's lease: 1 or 0."}),
		depth:        gauge("workqueue_depth", "Keys that wait.", byQueue...),
		unfinished:   gauge("workqueue_unfinished_work_seconds", "How long what is being done has taken so far, in sum.", byQueue...),
		longest:      gauge("workqueue_longest_running_processor_seconds", "How long the longest of it has taken so far.", byQueue...),
		adds:         counter("workqueue_adds_total", "Keys that were queued.", byQueue...),
		retries:      counter("workqueue_retries_total", "Keys that were queued again after a while.", byQueue...),
		latency:      histogram("workqueue_queue_duration_seconds", "How long a key waited.", byQueue...),
		work:         histogram("workqueue_work_duration_seconds", "How long a key was worked on.", byQueue...),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.syncs, m.syncSeconds, m.requests, m.requestTimes, m.leading,
		m.depth, m.unfinished, m.longest, m.adds, m.retries, m.latency, m.work)
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	// From a millisecond to a minute.
	buckets := prometheus.ExponentialBuckets(0.001, 4, 9)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Handler serves the metrics in Prometheus' format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

func (m *Metrics) observeSync(controller, result string, took time.Duration) {
	m.syncs.WithLabelValues(controller, result).Inc()
	m.syncSeconds.WithLabelValues(controller).Observe(took.Seconds())
}

// SetLeading says whether this process holds the leader's lease.
func (m *Metrics) SetLeading(isLeading bool) {
	m.leading.Set(0)
	if isLeading {
		m.leading.Set(1)
	}
}

// CountRequests returns a round tripper that counts what goes through it. A
// watch counts when it is opened.
func (m *Metrics) CountRequests(next http.RoundTripper) http.RoundTripper {
	return countingTransport{next: next, metrics: m}
}

type countingTransport struct {
	next    http.RoundTripper
	metrics *Metrics
}

// RoundTrip sends the request on, and counts it.
func (t countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	started := time.Now()
	response, err := t.next.RoundTrip(request)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	t.metrics.requests.WithLabelValues(request.Method, code).Inc()
	t.metrics.requestTimes.WithLabelValues(request.Method).Observe(time.Since(started).Seconds())
	return response, err
}

// queueProvider gives work queues their metrics.
func (m *Metrics) queueProvider() workqueue.MetricsProvider { return queueMetrics{m} }

type queueMetrics struct{ *Metrics }

func (q queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

func (q queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

func (q queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

func (q queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

func (q queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

func (q queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

func (q queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}
