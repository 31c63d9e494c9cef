// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// flags are the command line, read.
type flags struct {
	kubeconfig     string
	workers        int
	metricsAddress string
	healthAddress  string
	logFormat      string
	verbosity      int
	version        bool
	// usage is what --help prints.
	usage string
}

const usageHead = `database-manager keeps databases as the DatabaseManagers of its cluster ask for.

In a cluster it needs no flags: it uses its pod's service account. Elsewhere,
--kubeconfig says which cluster is meant.

Flags:
`

// parseFlags reads the command line. It returns pflag.ErrHelp, with the usage,
// if that was asked for.
func parseFlags(arguments []string) (flags, error) {
	read := flags{}
	set := pflag.NewFlagSet("database-manager", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.SortFlags = false
	set.StringVar(&read.kubeconfig, "kubeconfig", "", "`file` that says how the cluster is reached; default: as a pod of that cluster")
	set.IntVar(&read.workers, "workers", 8, "how `many` databases are worked on at once")
	set.StringVar(&read.metricsAddress, "metrics-bind-address", ":8080", "`address` that /metrics is served on; 0 for none")
	set.StringVar(&read.healthAddress, "health-probe-bind-address", ":8081", "`address` that /healthz and /readyz are served on; 0 for none")
	set.StringVar(&read.logFormat, "log-format", "text", "`format` of the log on standard error: text or json")
	set.IntVarP(&read.verbosity, "v", "v", 0, "`level` of detail of the log: 0 for changes that were made, 2 for decisions, 4 and more for requests")
	set.BoolVar(&read.version, "version", false, "print the version, and end")
	read.usage = usageHead + set.FlagUsages()
	if err := set.Parse(arguments); err != nil {
		return read, err
	}
	return read, read.check(set.Args())
}

func (f flags) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: there are only flags", rest[0])
	case f.workers < 1:
		return fmt.Errorf("--workers is %d; at least 1 is needed", f.workers)
	case f.logFormat != "text" && f.logFormat != "json":
		return fmt.Errorf("--log-format is %q; allowed are text and json", f.logFormat)
	default:
		return nil
	}
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
	options := &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}
	if f.logFormat == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(out, options))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(out, options))
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
