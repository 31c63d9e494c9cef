// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"coolops.cn/database-manager/internal/app"
)

// flags are the command line, read.
type flags struct {
	kubeconfig     string
	namespaces     []string
	controllers    []string
	workers        int
	leaderElect    bool
	leaseNamespace string
	metricsAddress string
	healthAddress  string
	pprofAddress   string
	logFormat      string
	verbosity      int
	defaults       defaults
	version        bool
	licenses       bool
	// usage is what --help prints.
	usage string
}

const usageHead = `database-manager keeps databases as the DatabaseManagers of its cluster ask for.

In a cluster it needs no flags: it uses its pod's service account. Elsewhere,
--kubeconfig says which cluster is meant. Of several processes one works; the
others wait for its lease.

Flags, each of which can be given as a variable of the environment too, such as
DATABASE_MANAGER_LOG_FORMAT=json; a flag wins over its variable:
`

// parseFlags reads the command line. It returns pflag.ErrHelp, with the usage,
// if that was asked for.
func parseFlags(arguments []string) (flags, error) {
	read := flags{}
	set := pflag.NewFlagSet("database-manager", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.SortFlags = false
	set.StringVar(&read.kubeconfig, "kubeconfig", "", "`file` that says how the cluster is reached; default: as a pod of that cluster")
	set.StringSliceVar(&read.namespaces, "namespaces", nil, "`names` of the namespaces that are watched, separated by commas; default: all")
	set.StringSliceVar(&read.controllers, "controllers", nil, "`names` of the controllers that run, separated by commas; default: "+strings.Join(app.ControllerNames(), ","))
	set.BoolVar(&read.leaderElect, "leader-elect", true, "work only while holding the leader's lease; turn it off where there is only one process")
	set.StringVar(&read.leaseNamespace, "leader-elect-namespace", "", "`namespace` of the lease; default: that of the pod")
	set.IntVar(&read.workers, "workers", 8, "how `many` objects each controller works on at once")
	set.StringVar(&read.metricsAddress, "metrics-bind-address", ":8080", "`address` that /metrics is served on; 0 for none")
	set.StringVar(&read.healthAddress, "health-probe-bind-address", ":8081", "`address` that /healthz and /readyz are served on; 0 for none")
	set.StringVar(&read.pprofAddress, "pprof-bind-address", "0", "`address` that profiles of this process are served on, below /debug/pprof; 0 for none. Profiles may show what is in memory, so choose one of 127.0.0.1")
	set.StringVar(&read.logFormat, "log-format", "text", "`format` of the log on standard error: text or json")
	set.IntVarP(&read.verbosity, "v", "v", 0, "`level` of detail of the log: 0 for changes that were made, 2 for decisions, 4 for what is queued and synced, 5 for what watches bring, 6 and more for requests")
	read.defaults.register(set)
	set.BoolVar(&read.version, "version", false, "print the version, and end")
	set.BoolVar(&read.licenses, "licenses", false, "print the licences of what this program contains, and end")
	read.usage = usageHead + set.FlagUsages()
	if err := set.Parse(arguments); err != nil {
		return read, err
	}
	if err := fromEnvironment(set, os.LookupEnv); err != nil {
		return read, err
	}
	if err := read.check(set.Args()); err != nil {
		return read, err
	}
	return read, read.defaults.parse()
}

// fromEnvironment sets the flags that weren't given from their variables.
func fromEnvironment(set *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failure error
	set.VisitAll(func(flag *pflag.Flag) {
		name := variableOf(flag.Name)
		value, isSet := lookup(name)
		if !isSet || flag.Changed {
			return
		}
		if err := set.Set(flag.Name, value); err != nil {
			failure = errors.Join(failure, fmt.Errorf("variable %s: %w", name, err))
		}
	})
	return failure
}

// variableOf returns the name of a flag's variable: DATABASE_MANAGER_LOG_FORMAT
// for log-format.
func variableOf(flag string) string {
	return "DATABASE_MANAGER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (f flags) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: there are only flags", rest[0])
	case f.workers < 1:
		return fmt.Errorf("--workers is %d; at least 1 is needed", f.workers)
	case f.firstBadNamespace() != "":
		return fmt.Errorf("--namespaces names %s, which can't be a namespace", f.firstBadNamespace())
	case f.firstBadController() != "":
		return fmt.Errorf("--controllers names %s; allowed are %s", f.firstBadController(), strings.Join(app.ControllerNames(), ", "))
	case f.logFormat != "text" && f.logFormat != "json":
		return fmt.Errorf("--log-format is %q; allowed are text and json", f.logFormat)
	default:
		return nil
	}
}

func (f flags) firstBadNamespace() string {
	for _, namespace := range f.namespaces {
		if len(validation.ValidateNamespaceName(namespace, false)) > 0 {
			return strconv.Quote(namespace)
		}
	}
	return ""
}

func (f flags) firstBadController() string {
	for _, name := range f.controllers {
		if !slices.Contains(app.ControllerNames(), name) {
			return strconv.Quote(name)
		}
	}
	return ""
}

// podNamespaceFile holds the namespace of the pod that a process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lease returns the namespace of the leader's lease; "" if none is wanted.
func (f flags) lease() (string, error) {
	if !f.leaderElect {
		return "", nil
	}
	if f.leaseNamespace != "" {
		return f.leaseNamespace, nil
	}
	if namespace := podNamespace(); namespace != "" {
		return namespace, nil
	}
	return "", errors.New("this isn't a pod of a cluster: say where the lease is with --leader-elect-namespace, or turn it off with --leader-elect=false")
}

// podNamespace is where this process's pod runs; "" if it isn't one.
func podNamespace() string {
	namespace, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(namespace))
}

// cluster says how the API server is reached.
func (f flags) cluster() (*rest.Config, error) {
	if f.kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("this isn't a pod of a cluster, and --kubeconfig isn't given: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	return config, nil
}

// logger writes to out. Levels of detail above 0 are slog levels below Info.
func (f flags) logger(out io.Writer) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(-f.verbosity), ReplaceAttr: hideBody}
	if f.logFormat == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(out, options))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(out, options))
}

// hideBody leaves out what client-go logs, from level 8 on, of what was sent and
// received: Secrets are among it.
func hideBody(_ []string, attribute slog.Attr) slog.Attr {
	if attribute.Key != "body" {
		return attribute
	}
	return slog.String("body", "(not shown, because it may hold passwords)")
}

// version is that of the module, or of the commit, that the program was built from.
func version() string {
	info, isKnown := debug.ReadBuildInfo()
	if !isKnown {
		return "unknown"
	}
	revision := ""
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			revision = " " + setting.Value
		}
	}
	return info.Main.Version + revision
}
