// SPDX-License-Identifier: Apache-2.0

// 05-leader-election counts pieces of work: of all that run, the one that has the lease.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate works while it has the lease.
type candidate struct {
	resourcelock.LeaseLock
	lease, piece time.Duration
	client       kubernetes.Interface
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, rules := &candidate{}, clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "`file` (default $KUBECONFIG, else ~/.kube/config; in a pod, its ServiceAccount)")
	flag.StringVar(&c.LeaseMeta.Namespace, "namespace", "default", "`name` of the namespace of the lease and the ConfigMap")
	flag.StringVar(&c.LeaseMeta.Name, "lease", "counter", "`name` of the lease, and of the ConfigMap that has the count")
	flag.StringVar(&c.LockConfig.Identity, "id", "", "`name` of this process, which no other ever has (required)")
	flag.DurationVar(&c.lease, "lease-duration", 15*time.Second, "how long a lease holds, in whole seconds;\nit is renewed every 2/15 of that, and lost after 10/15 in vain")
	flag.DurationVar(&c.piece, "piece", time.Second, "how long a piece of work takes")
	flag.Parse()
	c.lease = c.lease.Truncate(time.Second) // as the Lease does
	log.SetFlags(0)                         // troubles go to stderr, a sentence each
	log.SetPrefix(c.Identity() + ": ")
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err == nil {
		config.QPS, config.Timeout = -1, c.lease/6 // renewals don't queue behind the work
		if c.client, err = kubernetes.NewForConfig(config); err == nil {
			c.Client = c.client.CoordinationV1()
			err = c.run(ctx)
		}
	}
	if err != nil {
		log.Fatalf("ends: %v%s", err, advice(err))
	}
}

// run waits for the lease, works, and gives the lease up after the work has ended.
func (c *candidate) run(ctx context.Context) error {
	elected, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c, LeaseDuration: c.lease, RenewDeadline: c.lease * 10 / 15, RetryPeriod: c.lease * 2 / 15,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading }, OnStoppedLeading: func() { close(ended) },
			OnNewLeader: func(id string) { fmt.Printf("%s: the leader is %q\n", c.Identity(), id) },
		},
	})
	if err != nil {
		return fmt.Errorf("set up the election: %w", err)
	}
	// A signal must not end the renewals while work goes on, nor may ReleaseOnCancel end the lease.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	last := ""
	logger := funcr.New(func(_, line string) {
		if line != last && electing.Err() == nil { // the same trouble is told once
			log.Printf("client-go: %s", line)
		}
		last = line
	}, funcr.Options{Verbosity: -1}) // errors only
	go elector.Run(logr.NewContext(electing, logger))
	select {
	case <-ctx.Done():
	case leading := <-elected:
		err = c.work(ctx, leading)
	}
	stop()
	<-ended // no renewal is under way any more
	if record, _, getErr := c.Get(context.WithoutCancel(ctx)); getErr == nil && record.HolderIdentity == c.Identity() {
		fmt.Printf("%s: gives the lease up\n", c.Identity())
		record.HolderIdentity = ""
		err = errors.Join(err, c.Update(context.WithoutCancel(ctx), *record))
	}
	return err
}

// work does one piece after the other until ctx ends, and finishes the one at hand.
// Its writes go to the version that was read before the lease was checked. Where
// another leader has written since then, the check is old, but the version too.
func (c *candidate) work(ctx, leading context.Context) error {
	configMaps := c.client.CoreV1().ConfigMaps(c.LeaseMeta.Namespace)
	for pieces := 0; ; pieces = 1 { // none at first: that says who works from now on
		counter, err := configMaps.Get(leading, c.LeaseMeta.Name, metav1.GetOptions{})
		lease, leaseErr := c.Client.Leases(c.LeaseMeta.Namespace).Get(leading, c.LeaseMeta.Name, metav1.GetOptions{})
		if err = errors.Join(err, leaseErr); err == nil {
			if resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec).HolderIdentity != c.Identity() {
				return errors.New("another one has the lease")
			}
			count, _ := strconv.Atoi(counter.Data["count"]) // nothing is 0
			counter.Data = map[string]string{"count": strconv.Itoa(count + pieces), "by": c.Identity()}
			if counter, err = configMaps.Update(leading, counter, metav1.UpdateOptions{}); err == nil {
				fmt.Printf("%s: the count is %s\n", c.Identity(), counter.Data["count"])
			}
		}
		switch {
		case leading.Err() != nil:
			log.Fatal("ends: the lease is lost") // at once, before another one works
		case advice(err) != "" || ctx.Err() != nil:
			return err
		case err != nil:
			log.Printf("tries again: %v", err)
		}
		piece, end := context.WithTimeout(leading, c.piece)
		<-piece.Done() // that is the work
		end()
	}
}

// Get is how each try to get the lease begins. What can't heal ends the process.
func (c *candidate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := c.LeaseLock.Get(ctx)
	if why := advice(err); why != "" && !apierrors.IsNotFound(err) {
		log.Fatalf("ends: %v%s", err, why)
	}
	return record, raw, err
}

// advice says what to do about an error that trying again doesn't mend.
func advice(err error) string {
	if _, isBad := errors.AsType[*tls.CertificateVerificationError](err); isBad || apierrors.IsUnauthorized(err) {
		return ": correct the certificate authority or the credentials in the kubeconfig"
	}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return ": create the ConfigMap, and a Role that lets this user read and update it and the lease"
	}
	return ""
}
