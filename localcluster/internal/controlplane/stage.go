// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// stage is a set of components that start together and are stopped together.
type stage struct {
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan<- error
	wg     sync.WaitGroup
}

// newStage returns an empty stage; a component that ends before the stage is stopped is reported on ended.
func newStage(ended chan<- error) *stage {
	ctx, cancel := context.WithCancel(context.Background())
	return &stage{ctx: ctx, cancel: cancel, ended: ended}
}

func (s *stage) start(component string, run func(context.Context) error) {
	s.wg.Go(func() {
		err := run(s.ctx)
		if s.ctx.Err() == nil {
			s.ended <- fmt.Errorf("%s ended: %w", component, errorOr(err, "without an error"))
		}
	})
}

// stop ends the stage's components and waits for them, stopTimeout at most.
func (s *stage) stop() {
	s.cancel()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		klog.InfoS("A component did not stop in time", "timeout", stopTimeout)
	}
}

func errorOr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}
