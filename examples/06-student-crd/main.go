// SPDX-License-Identifier: Apache-2.0

// 06-student-crd creates a Student, watches whether anything comes of it, and deletes it.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	coolopsv1 "coolops.cn/database-manager/examples/06-student-crd/apis/coolops/v1"
	"coolops.cn/database-manager/examples/06-student-crd/generated/clientset/versioned"
	typedv1 "coolops.cn/database-manager/examples/06-student-crd/generated/clientset/versioned/typed/coolops/v1"
)

func main() {
	log.SetFlags(0) // troubles go to stderr, a sentence each
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "`file` (default $KUBECONFIG, else ~/.kube/config; in a pod, its ServiceAccount)")
	namespace := flag.String("namespace", "default", "`name` of the Student's namespace")
	seconds := flag.Int64("seconds", 5, "for how long to watch whether anything happens")
	flag.Parse()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		log.Fatalf("no way to a cluster, set --kubeconfig or KUBECONFIG: %v", err)
	}
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		log.Fatalf("the kubeconfig can't be used: %v", err)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, clientset.CoolopsV1().Students(*namespace), *seconds); err != nil && ctx.Err() == nil {
		reason, _ := explain(err)
		log.Fatal(reason)
	}
}

// run takes one Student from its creation to its deletion.
func run(ctx context.Context, students typedv1.StudentInterface, seconds int64) error {
	err := retry(ctx, func() error {
		list, err := students.List(ctx, metav1.ListOptions{})
		if err == nil {
			fmt.Printf("the API server knows Students, and has %d\n", len(list.Items))
		}
		return err
	})
	if err != nil {
		return err
	}
	student := &coolopsv1.Student{ObjectMeta: metav1.ObjectMeta{Name: "zhang-san"}, Spec: coolopsv1.StudentSpec{Name: "张三", School: "Peking University"}}
	student, err = students.Create(ctx, student, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("created %s: %s of %s, version %s\n", student.Name, student.Spec.Name, student.Spec.School, student.ResourceVersion)
	defer func() { // also after a signal, or when something went wrong
		options := metav1.NewPreconditionDeleteOptions(string(student.UID))
		if err := students.Delete(context.WithoutCancel(ctx), student.Name, *options); err != nil {
			log.Fatalf("%s is still there, kubectl delete student %s: %v", student.Name, student.Name, err)
		}
		fmt.Println("deleted", student.Name)
	}()
	nobody := &coolopsv1.Student{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}
	_, err = students.Create(ctx, nobody, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		fmt.Println("not refused: this CustomResourceDefinition has no bounds")
	case apierrors.IsInvalid(err):
		fmt.Println("refused:", err)
	default:
		return err
	}
	return retry(ctx, func() error { return watch(ctx, students, student, seconds) })
}

// watch sees every change since the creation, and reads the Student again.
func watch(ctx context.Context, students typedv1.StudentInterface, student *coolopsv1.Student, seconds int64) error {
	began := time.Now()
	watcher, err := students.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + student.Name, ResourceVersion: student.ResourceVersion, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	if event, isOpen := <-watcher.ResultChan(); isOpen {
		return fmt.Errorf("somebody acts on Students: %s %s", event.Type, student.Name)
	}
	if time.Since(began) < time.Duration(seconds)*time.Second {
		return fmt.Errorf("the watch broke off: %w", io.ErrUnexpectedEOF)
	}
	read, err := students.Get(ctx, student.Name, metav1.GetOptions{})
	if err == nil {
		fmt.Printf("nothing happened in %d seconds: %s has version %s\n", seconds, read.Name, read.ResourceVersion)
	}
	return err
}

// retry does a step until it succeeds or can't, with growing pauses.
func retry(ctx context.Context, step func() error) error {
	for pause, said := 500*time.Millisecond, ""; ; pause = min(2*pause, 30*time.Second) {
		err := step()
		reason, heals := explain(err)
		if !heals || ctx.Err() != nil {
			return err
		}
		if reason != said {
			log.Printf("%s; trying again, with growing pauses", reason)
			said = reason
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// explain says what is wrong and what to do, and whether it may heal by itself.
func explain(err error) (string, bool) {
	_, isBad := errors.AsType[*tls.CertificateVerificationError](err)
	_, isUnanswered := errors.AsType[*url.Error](err)
	switch {
	case isBad:
		return fmt.Sprintf("%v: correct the kubeconfig's certificate-authority", err), false
	case isUnanswered || apierrors.IsServiceUnavailable(err) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("no answer, is the kubeconfig's server right and running? %v", err), true
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return "the API server doesn't know Students: kubectl apply -f examples/06-student-crd/crd.yaml", true
	case apierrors.IsAlreadyExists(err):
		return fmt.Sprintf("%v, left by a run that was killed: kubectl delete student zhang-san", err), false
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v: renew the kubeconfig's credentials", err), false
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v: give it a Role that may create, list, watch, get and delete students", err), false
	}
	return fmt.Sprint(err), false
}
