// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// Config says where the control plane keeps its files and where it listens.
type Config struct {
	// PKIDir holds the certificates, keys and kubeconfigs that package pki wrote.
	PKIDir string
	// DataDir holds etcd's data.
	DataDir string
	// BindAddress is the IP address on which the API server listens and which it advertises.
	BindAddress string
	// Port is the API server's TCP port.
	Port int
	// ListenFD is the number of an inherited listening socket to serve on; 0 means: bind BindAddress and Port.
	ListenFD int
	// AuditLog is the file that every request is noted in; empty means: none.
	AuditLog string
	// EtcdMetrics is the path of the socket on which etcd's metrics are read; empty means: none.
	EtcdMetrics string
	// Kwok is the program that plays fake nodes, with its output in the file KwokLog; empty means: there are none.
	Kwok, KwokLog string
	// VolumesDir is the folder below which local volumes are made, one folder a node; empty means: no provisioner.
	VolumesDir string
	// NodeLostAfter is how long nothing is heard of a node until it is taken to be lost, and EvictAfter how long its pods
	// are kept from then on, in whole seconds, where they don't say; 0 means: as Kubernetes does.
	NodeLostAfter, EvictAfter time.Duration
}

// AddFlags registers a flag for each field.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.PKIDir, "pki-dir", "", "folder of certificates, keys and kubeconfigs")
	flags.StringVar(&c.DataDir, "data-dir", "", "folder of etcd's data")
	flags.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address of the API server")
	flags.IntVar(&c.Port, "port", 6443, "TCP port of the API server")
	flags.IntVar(&c.ListenFD, "listen-fd", 0, "inherited listening socket to serve on (0: bind the address and port)")
	flags.StringVar(&c.AuditLog, "audit-log", "", "file that every request is noted in (empty: none)")
	flags.StringVar(&c.EtcdMetrics, "etcd-metrics", "", "path of the socket on which etcd's metrics are read (empty: none)")
	flags.StringVar(&c.Kwok, "kwok", "", "program that plays fake nodes (empty: none)")
	flags.StringVar(&c.KwokLog, "kwok-log", "", "file for that program's output")
	flags.StringVar(&c.VolumesDir, "volumes-dir", "", "folder for local volumes (empty: no provisioner)")
	flags.DurationVar(&c.NodeLostAfter, "node-lost-after", 0, "silence of a node after which it isn't ready (0: as Kubernetes does)")
	flags.DurationVar(&c.EvictAfter, "evict-after", 0, "how long pods of a node that is lost are kept, by default (0: as Kubernetes does)")
}

// Validate reports what is missing.
func (c *Config) Validate() error {
	if c.PKIDir == "" || c.DataDir == "" {
		return errors.New("--pki-dir and --data-dir are required")
	}
	return nil
}

func (c *Config) pki(file string) string { return filepath.Join(c.PKIDir, file) }
