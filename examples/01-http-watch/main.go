// SPDX-License-Identifier: Apache-2.0

// Command 01-http-watch prints what happens to the pods of one namespace.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// object is what is read of a Pod, of a PodList, and of a Status: a refusal.
type object struct {
	Metadata struct{ Namespace, Name, ResourceVersion string }
	Status   any      // a Pod's has fields, a Status's is a word
	Items    []object // of a PodList
	Code     int      // of a Status
	Message  string   // of a Status
}

type watcher struct {
	client            *http.Client
	pods              *http.Request // asks for the pods, once it has a token and a query
	tokenFile, caFile string
	version           string // where the next watch begins; "" to list first
}

func main() {
	log.SetFlags(0) // troubles go to stderr, a sentence each
	const mount = "/var/run/secrets/kubernetes.io/serviceaccount/"
	server := flag.String("server", "https://kubernetes.default.svc", "`URL` of the API server; all defaults are those of a pod")
	tokenFile := flag.String("token-file", mount+"token", "`file` with a bearer token")
	caFile := flag.String("ca-file", mount+"ca.crt", "`file` with the CA that signed the API server's certificate")
	namespace := flag.String("namespace", "default", "`name` of the namespace")
	flag.Parse()
	pods, err := http.NewRequest(http.MethodGet, strings.TrimRight(*server, "/")+"/api/v1/namespaces/"+*namespace+"/pods", http.NoBody)
	if err != nil || pods.URL.Scheme != "https" {
		log.Fatalf("--server=%s isn't of the form https://HOST:PORT", *server)
	}
	roots := x509.NewCertPool()
	if certificates, err := os.ReadFile(*caFile); err != nil || !roots.AppendCertsFromPEM(certificates) {
		log.Fatalf("no certificate in --ca-file=%s: outside of a pod, say --server, --token-file and --ca-file", *caFile)
	}
	client := &http.Client{Timeout: 310 * time.Second, Transport: &http.Transport{ // a watch ends after 300
		TLSClientConfig: &tls.Config{RootCAs: roots}, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	(&watcher{client: client, pods: pods, tokenFile: *tokenFile, caFile: *caFile}).run(ctx)
}

// run lists once and watches, again and again, until ctx ends.
func (w *watcher) run(ctx context.Context) {
	const shortest, longest = 500 * time.Millisecond, 30 * time.Second
	for pause, said := shortest, ""; ctx.Err() == nil; pause = min(2*pause, longest) {
		began := time.Now()
		err := w.ask(ctx)
		if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // that won't heal
			log.Fatalf("the certificate of %s doesn't verify against the CA in %s, see --ca-file: %s", w.pods.URL.Host, w.caFile, wrong.Err)
		}
		if time.Since(began) > longest { // it went well
			pause, said = shortest, ""
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			log.Printf("%s; trying again, with growing pauses", said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): // so that not all clients come at once
		}
	}
}

// ask lists the pods or watches them, and reads the answer to its end.
func (w *watcher) ask(ctx context.Context) error {
	token, err := os.ReadFile(w.tokenFile) // each time, since it is renewed in place
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	request := w.pods.Clone(ctx)
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if w.version != "" {
		request.URL.RawQuery = "watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + w.version
	}
	response, err := w.client.Do(request)
	if err != nil {
		return fmt.Errorf("no answer, is --server right and running? %w", errors.Unwrap(err))
	}
	defer response.Body.Close()
	body := json.NewDecoder(response.Body)
	if response.StatusCode == http.StatusOK && w.version != "" {
		return w.printEvents(body)
	}
	answer := object{Code: response.StatusCode, Message: "the answer can't be read"}
	if err := body.Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		return w.refused(answer)
	}
	for _, pod := range answer.Items {
		pod.print("LISTED")
	}
	w.version = answer.Metadata.ResourceVersion
	return nil
}

func (w *watcher) printEvents(stream *json.Decoder) error {
	fmt.Println("WATCHING from version", w.version)
	for {
		var event struct {
			Type   string
			Object object
		}
		if err := stream.Decode(&event); err != nil {
			return fmt.Errorf("the watch ended: %w", err) // EOF after 300 seconds
		}
		switch event.Type {
		case "ERROR":
			return w.refused(event.Object)
		case "ADDED", "MODIFIED", "DELETED":
			event.Object.print(event.Type)
		}
		w.version = event.Object.Metadata.ResourceVersion // a BOOKMARK is nothing else
	}
}

func (w *watcher) refused(status object) error {
	if status.Code == http.StatusGone {
		w.version = "" // list again
	}
	hints := map[int]string{401: ": put a valid token into " + w.tokenFile, 403: ": give it a Role that may list and watch pods"}
	return fmt.Errorf("%d %s%s", status.Code, status.Message, hints[status.Code])
}

func (o object) print(what string) {
	status, _ := o.Status.(map[string]any)
	fmt.Printf("%s %s/%s (%s)\n", what, o.Metadata.Namespace, o.Metadata.Name, status["phase"])
}
