// SPDX-License-Identifier: Apache-2.0

// Package cli is localcluster's command line.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"coolops.cn/database-manager/localcluster/internal/build"
	"coolops.cn/database-manager/localcluster/internal/cache"
	"coolops.cn/database-manager/localcluster/internal/cluster"
	"coolops.cn/database-manager/localcluster/internal/images"
	"coolops.cn/database-manager/localcluster/internal/networkpolicy"
	"coolops.cn/database-manager/localcluster/internal/node"
	"coolops.cn/database-manager/localcluster/internal/progress"
	"coolops.cn/database-manager/localcluster/internal/sizedvolume"
)

// settings are the flags that every command has.
type settings struct {
	name, stateDir, cacheDir, source string
}

func (s *settings) cluster() (*cluster.Cluster, error) { return cluster.Open(s.name, s.stateDir) }

// options are what a start or a build needs.
func (s *settings) options(controlPlaneOnly bool) (cluster.Options, error) {
	source, err := build.FindSource(s.source)
	if err != nil {
		return cluster.Options{}, err
	}
	printer := progress.NewPrinter(os.Stderr)
	store, err := cache.Open(s.cacheDir, func(name string) {
		printer.Printf("another process makes %s: waiting for it", name)
	})
	if err != nil {
		return cluster.Options{}, err
	}
	lock, err := images.ReadLock(lockFile(source))
	if err != nil {
		return cluster.Options{}, err
	}
	options := cluster.Options{
		Builder: build.Builder{Source: source, Cache: store, Printer: printer},
		Maker:   images.NewMaker(store, lock, printer), ControlPlaneOnly: controlPlaneOnly,
	}
	return options, nil
}

func lockFile(source string) string { return filepath.Join(source, "images.lock") }

// NewCommand returns the root command.
func NewCommand() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:   "localcluster",
		Short: "Run Kubernetes " + build.KubernetesVersion + " on a bare Linux machine",
		Long: `localcluster runs Kubernetes ` + build.KubernetesVersion + ` on a bare Linux machine: a control plane in one process and
real nodes (containerd, kubelet, kube-proxy), built from Go modules and Debian packages, without a registry.

Everything lives in namespaces of its own: the host's network and mounts stay as they are, and the API
server is reached on a port of 127.0.0.1. A first start builds Kubernetes, which takes 10 to 30 minutes,
and installs the package mmdebstrap where it is missing; later ones take seconds.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&s.name, "name", "dev", "name of the cluster")
	flags.StringVar(&s.stateDir, "state-dir", "", "folder that holds each cluster's state folder (default: localcluster in XDG_STATE_HOME or ~/.local/state)")
	flags.StringVar(&s.cacheDir, "cache-dir", "", "folder for builds and images (default: localcluster in the user's cache folder)")
	flags.StringVar(&s.source, "source", "", "folder of localcluster's Go module (default: ./localcluster or .)")
	root.AddCommand(s.up(), s.down(), s.restart(), s.status(), s.env(), s.kubeconfig(), s.kubectl(), s.logs(), s.etcdMetrics(),
		s.node(), s.isolate(), s.rejoin(), s.loadImage(), buildImage(), s.build(), s.images(), s.imageRoot())
	root.AddCommand(s.internal()...)
	return root
}

func (s *settings) up() *cobra.Command {
	var controlPlaneOnly, auditLog bool
	var asked cluster.Options
	command := &cobra.Command{
		Use: "up", Short: "Start the cluster, and wait until it is ready; a running one is left as it is, but for nodes that are added", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			options, err := s.options(controlPlaneOnly)
			if err != nil {
				return err
			}
			options.Port, options.AuditLog = asked.Port, auditLog
			if err := askedForNodes(command.Flags(), asked, &options); err != nil {
				return err
			}
			if err := c.Up(command.Context(), options); err != nil {
				return err
			}
			return c.Status(command.Context(), command.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&auditLog, "audit-log", false, "note every request to the API server in a log (logs/audit.log in the state folder)")
	command.Flags().BoolVar(&controlPlaneOnly, "control-plane-only", false, "start no node: an API server with its controllers, which needs no root")
	nodeFlags(command.Flags(), &asked)
	command.Flags().IntVar(&asked.Port, "port", 0, "port of the API server on 127.0.0.1 (0: any that is free)")
	return command
}

func nodeFlags(flags *pflag.FlagSet, asked *cluster.Options) {
	flags.IntVar(&asked.Nodes, "nodes", 1, "number of nodes, 1 to 3; more than a running cluster has are added (not given: as many as there are)")
	flags.IntVar(&asked.Fake, "fake", 0, "number of nodes besides that kwok plays: their pods are ready at once, and run nothing (not given: as many as there are)")
	flags.DurationVar(&asked.NodeLostAfter, "node-lost-after", cluster.DefaultNodeLostAfter, "how long nothing is heard of a node until it isn't ready")
	flags.DurationVar(&asked.EvictAfter, "evict-after", cluster.DefaultEvictAfter, "how long pods of a node that isn't ready are kept, where they don't say")
}

// askedForNodes takes over what was given. What wasn't is as it was, or the default.
func askedForNodes(flags *pflag.FlagSet, asked cluster.Options, options *cluster.Options) error {
	if flags.Changed("nodes") {
		if asked.Nodes == 0 {
			return errors.New("--nodes is 0: a cluster without nodes is made by --control-plane-only")
		}
		options.Nodes = asked.Nodes
	}
	if flags.Changed("fake") {
		if asked.Fake == 0 {
			return errors.New("--fake is 0: leave it out, or give the number of fake nodes")
		}
		options.Fake = asked.Fake
	}
	for name, place := range map[string]struct{ asked, wanted *time.Duration }{
		"node-lost-after": {&asked.NodeLostAfter, &options.NodeLostAfter},
		"evict-after":     {&asked.EvictAfter, &options.EvictAfter},
	} {
		if !flags.Changed(name) {
			continue
		}
		if *place.asked == 0 {
			return fmt.Errorf("--%s is 0: no node answers at once", name)
		}
		*place.wanted = *place.asked
	}
	return nil
}

func (s *settings) down() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the cluster and remove it; only what is in the cache stays", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return c.Down(command.Context(), command.ErrOrStderr())
		},
	}
}

func (s *settings) restart() *cobra.Command {
	var restart cluster.Restart
	command := &cobra.Command{
		Use: "restart", Short: "End the control plane and start it again on the same data, and wait until it is ready; nodes go on", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return c.Restart(command.Context(), restart, progress.NewPrinter(os.Stderr))
		},
	}
	command.Flags().BoolVar(&restart.Kill, "kill", false, "end it as a crash would, by SIGKILL")
	command.Flags().DurationVar(&restart.Away, "down-for", 0, "how long there is none, such as 3s")
	return command
}

func (s *settings) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Tell what the cluster is and whether it works", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return c.Status(command.Context(), command.OutOrStdout())
		},
	}
}

func (s *settings) env() *cobra.Command {
	return &cobra.Command{
		Use: "env", Short: "Print the lines that make kubectl and other clients in a shell use the cluster", Args: cobra.NoArgs,
		Example: `  eval "$(localcluster env)"`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			lines, err := c.Env()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), lines)
			return err
		},
	}
}

func (s *settings) kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		Example: "  export KUBECONFIG=$(localcluster kubeconfig)",
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			if _, err := c.Config(); err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), c.Kubeconfig())
			return err
		},
	}
}

func (s *settings) kubectl() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl ARGUMENTS", Short: "Run kubectl for the cluster; flags of localcluster come before the arguments",
		Example: "  localcluster kubectl get pods --all-namespaces",
		// Every flag from the first that isn't ours is kubectl's.
		DisableFlagParsing: true,
		RunE: func(command *cobra.Command, args []string) error {
			own, rest := splitArgs(command.InheritedFlags(), args)
			if err := command.InheritedFlags().Parse(own); err != nil {
				return err
			}
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return c.Kubectl(rest)
		},
	}
}

// splitArgs parts the flags at the beginning, of those that are known, from the rest. A `--` between them is dropped.
func splitArgs(known *pflag.FlagSet, args []string) (own, rest []string) {
	for i := 0; i < len(args); i++ {
		flag, isLong := strings.CutPrefix(args[i], "--")
		name, _, hasValue := strings.Cut(flag, "=")
		switch {
		case args[i] == "--":
			return args[:i], args[i+1:]
		case !isLong || known.Lookup(name) == nil:
			return args[:i], args[i:]
		case !hasValue:
			i++
		}
	}
	return args, nil
}

func (s *settings) logs() *cobra.Command {
	var follow bool
	command := &cobra.Command{
		Use: "logs [COMPONENT]", Short: "List the components that have a log, or print one's log", Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			if _, err := c.Config(); err != nil {
				return err
			}
			if len(args) == 1 {
				return c.WriteLog(command.Context(), args[0], follow, command.OutOrStdout())
			}
			names, err := c.Logs()
			for _, name := range names {
				_, err = fmt.Fprintln(command.OutOrStdout(), name)
			}
			return err
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added, until interrupted or the cluster is gone")
	return command
}

func (s *settings) etcdMetrics() *cobra.Command {
	return &cobra.Command{
		Use: "etcd-metrics", Short: "Print the metrics of etcd, in the text format of Prometheus; they count from the control plane's last start", Args: cobra.NoArgs,
		Example: "  localcluster etcd-metrics | grep ^etcd_mvcc_put_total",
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return c.WriteEtcdMetrics(command.Context(), command.OutOrStdout())
		},
	}
}

func (s *settings) loadImage() *cobra.Command {
	return &cobra.Command{
		Use: "load-image ARCHIVE…", Short: "Import image archives (of docker save, or in OCI layout) into the nodes", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			for _, archive := range args {
				err = errors.Join(err, c.LoadImage(command.Context(), archive))
			}
			return err
		},
	}
}

func buildImage() *cobra.Command {
	var image images.BinaryImage
	var output string
	command := &cobra.Command{
		Use: "build-image", Short: "Write an archive of an image that holds one static binary and nothing else", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if image.Command == "" {
				image.Command = filepath.Base(image.Binary)
			}
			return image.WriteArchive(output)
		},
	}
	flags := command.Flags()
	flags.StringVar(&image.Binary, "binary", "", "path of the static binary")
	flags.StringVar(&image.Reference, "reference", "", "name of the image, with a tag")
	flags.StringVar(&image.Command, "command", "", "name of the binary in the image (default: its name here)")
	flags.StringVar(&image.User, "user", "65532", "numeric user that it runs as")
	flags.StringVar(&output, "output", "", "path of the archive")
	for _, required := range []string{"binary", "reference", "output"} {
		cobra.CheckErr(command.MarkFlagRequired(required)) // fails only for a flag that isn't defined above
	}
	return command
}

func (s *settings) build() *cobra.Command {
	var controlPlaneOnly, fake bool
	command := &cobra.Command{
		Use: "build", Short: "Build and unpack what a start needs, and start nothing", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := s.options(controlPlaneOnly)
			if err != nil {
				return err
			}
			if fake {
				options.Fake = 1
			}
			if err := options.Check(""); err != nil {
				return err
			}
			_, err = options.Prepare(command.Context())
			return err
		},
	}
	command.Flags().BoolVar(&controlPlaneOnly, "control-plane-only", false, "only what a cluster without nodes needs")
	command.Flags().BoolVar(&fake, "fake", false, "also what plays fake nodes")
	return command
}

func (s *settings) images() *cobra.Command {
	var update bool
	command := &cobra.Command{
		Use: "images", Short: "List the packages of each image, or record their versions in the lock file", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := s.options(false)
			if err != nil {
				return err
			}
			if update {
				lock, err := options.Maker.Renew(command.Context())
				if err != nil {
					return err
				}
				return lock.Write(lockFile(options.Builder.Source))
			}
			lock, err := options.Maker.Current(command.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), lock)
			return err
		},
	}
	command.Flags().BoolVar(&update, "update-lock", false, "unpack what the mirror has today and write the lock file")
	return command
}

// internal are the commands by which this program starts itself in other namespaces.
func (s *settings) internal() []*cobra.Command {
	return []*cobra.Command{
		{Use: cluster.InitCommand, Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			c, err := s.cluster()
			if err != nil {
				return err
			}
			return cluster.RunInit(c)
		}},
		{Use: cluster.NodeCommand, Hidden: true, Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			return cluster.RunNode(args[0])
		}},
		{Use: node.NetworkPolicyCommand, Hidden: true, Args: cobra.ExactArgs(3), RunE: func(command *cobra.Command, args []string) error {
			return networkpolicy.Run(command.Context(), networkpolicy.Node{Name: args[0], PodCIDR: args[1]}, args[2])
		}},
		{Use: node.SizedVolumeCommand, Hidden: true, Args: cobra.ExactArgs(2), RunE: func(command *cobra.Command, args []string) error {
			return sizedvolume.Run(command.Context(), args[0], args[1])
		}},
		{Use: cluster.ExecCommand, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error {
			return cluster.RunExec(args)
		}},
	}
}
