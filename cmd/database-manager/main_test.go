// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

func TestTheCommandLine(t *testing.T) {
	for sentence, row := range map[string]struct {
		arguments []string
		refused   string
		check     func(flags) bool
	}{
		"may be empty": {nil, "", func(f flags) bool {
			return f.workers == 8 && f.metricsAddress == ":8080" && f.healthAddress == ":8081" && f.pprofAddress == "0" && f.logFormat == "text"
		}},
		"sets what it names": {
			[]string{"--kubeconfig=k", "--workers", "3", "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:1", "--pprof-bind-address=127.0.0.1:2", "-v", "4", "--log-format=json"},
			"",
			func(f flags) bool {
				return f.kubeconfig == "k" && f.workers == 3 && f.metricsAddress == "0" && f.healthAddress == "127.0.0.1:1" && f.pprofAddress == "127.0.0.1:2" && f.verbosity == 4 && f.logFormat == "json"
			},
		},
		"may have v in two forms":           {[]string{"--v=2"}, "", func(f flags) bool { return f.verbosity == 2 }},
		"refuses a flag that doesn't exist": {[]string{"--nope"}, "nope", nil},
		"refuses an argument":               {[]string{"run"}, `unexpected argument "run"`, nil},
		"refuses no workers":                {[]string{"--workers=0"}, "--workers is 0", nil},
		"takes lists": {
			[]string{"--namespaces=shop,office", "--controllers=foo", "--leader-elect=false"},
			"",
			func(f flags) bool {
				return slices.Equal(f.namespaces, []string{"shop", "office"}) && slices.Equal(f.controllers, []string{"foo"}) && !f.leaderElect
			},
		},
		"refuses a namespace that can't be":     {[]string{"--namespaces=Shop"}, `--namespaces names "Shop"`, nil},
		"refuses a controller that there isn't": {[]string{"--controllers=bar"}, "allowed are databasemanager, foo", nil},
		"refuses a log format":                  {[]string{"--log-format=xml"}, `--log-format is "xml"`, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := parseFlags(row.arguments)
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("got %v, want a refusal with %q", err, row.refused)
				}
				return
			}
			if err != nil || !row.check(got) {
				t.Errorf("got %+v and %v", got, err)
			}
		})
	}
}

func TestAFlagThatIsntGivenComesFromTheEnvironment(t *testing.T) {
	t.Setenv("DATABASE_MANAGER_LOG_FORMAT", "json")
	t.Setenv("DATABASE_MANAGER_NAMESPACES", "shop,office")
	t.Setenv("DATABASE_MANAGER_WORKERS", "3")
	got, err := parseFlags([]string{"--workers=5"})
	if err != nil || got.logFormat != "json" || !slices.Equal(got.namespaces, []string{"shop", "office"}) || got.workers != 5 {
		t.Errorf("got %+v and %v", got, err)
	}
	t.Setenv("DATABASE_MANAGER_V", "much")
	if _, err := parseFlags(nil); err == nil || !strings.Contains(err.Error(), "variable DATABASE_MANAGER_V") {
		t.Errorf("got %v, want a refusal that names the variable", err)
	}
}

func TestTheLeaseIsWhereItIsWanted(t *testing.T) {
	for sentence, row := range map[string]struct {
		flags         flags
		want, refused string
	}{
		"nowhere, if there is one process only": {flags{leaseNamespace: "shop"}, "", ""},
		"in the namespace that is named":        {flags{leaderElect: true, leaseNamespace: "shop"}, "shop", ""},
		"in the pod's, where there is a pod":    {flags{leaderElect: true}, "", "--leader-elect-namespace"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := row.flags.lease()
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("got %v, want a refusal with %q", err, row.refused)
				}
				return
			}
			if got != row.want || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, row.want)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	read, err := parseFlags([]string{"--help"})
	if !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	for _, flag := range []string{
		"--kubeconfig", "--workers", "--metrics-bind-address", "--health-probe-bind-address", "--pprof-bind-address", "--log-format", "--v", "--version",
		"--namespaces", "--controllers", "--leader-elect", "--leader-elect-namespace", "--licenses",
		"--default-registry", "--default-image-pull-secrets", "--default-storage-class", "--default-tolerations",
	} {
		if !strings.Contains(read.usage, flag) {
			t.Errorf("no %s in\n%s", flag, read.usage)
		}
	}
}

// TestTheProgramCarriesTheLicencesOfWhatItContains looks for one text of each kind.
func TestTheProgramCarriesTheLicencesOfWhatItContains(t *testing.T) {
	for _, text := range []string{"Apache License", "Mozilla Public License", "The Go Authors", "k8s.io/client-go v", "github.com/jackc/pgx/v5 v"} {
		if !strings.Contains(licenses, text) {
			t.Errorf("no %q among the licences", text)
		}
	}
}

func TestTheExitCodeSaysWhatHappened(t *testing.T) {
	for sentence, row := range map[string]struct {
		arguments []string
		code      int
	}{
		"help":                          {[]string{"--help"}, 0},
		"a version":                     {[]string{"--version"}, 0},
		"licences":                      {[]string{"--licenses"}, 0},
		"a wrong flag":                  {[]string{"--nope"}, 2},
		"a missing kubeconfig":          {[]string{"--kubeconfig=testdata/nothing"}, 1},
		"a controller that there isn't": {[]string{"--controllers=bar"}, 2},
	} {
		if code := run(t.Context(), row.arguments); code != row.code {
			t.Errorf("%s gives %d, want %d", sentence, code, row.code)
		}
	}
}

func TestTheLogIsOfTheFormatAndDetailThatWasAskedFor(t *testing.T) {
	var out bytes.Buffer
	logger := flags{logFormat: "json", verbosity: 2}.logger(&out)
	logger.V(2).Info("shown", "key", "value")
	logger.V(3).Info("hidden")
	if text := out.String(); !strings.Contains(text, `"msg":"shown"`) || !strings.Contains(text, `"key":"value"`) || strings.Contains(text, "hidden") {
		t.Errorf("got %s", text)
	}
}

// TestTheLogShowsNoBody sends a Secret as client-go does, at the greatest detail.
func TestTheLogShowsNoBody(t *testing.T) {
	const password = "c2VjcmV0"
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(response, request.Body) // the test sees if it isn't
	}))
	defer server.Close()
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		ctx := klog.NewContext(t.Context(), flags{logFormat: format, verbosity: 10}.logger(&out))
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		patch := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"password":"` + password + `"}}`
		if _, err := client.CoreV1().Secrets("shop").Patch(ctx, "s", types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, password) || strings.Count(text, "not shown, because it may hold passwords") != 2 {
			t.Errorf("%s: the log is %s", format, text)
		}
	}
}
