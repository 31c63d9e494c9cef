// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// order is the order in which queued keys are served: what just changed goes
// before what can wait, such as the thousands of keys of a start, or those that
// have failed before. It is the work queue's Queue, which calls Touch, Push, Len
// and Pop under its own lock; hurry and mayWait are called before a key is added.
type order struct {
	mu sync.Mutex
	// asked is how urgently each key was asked for since it was last queued.
	asked map[cache.ObjectName]urgency
	// queued is where each queued key waits. A key that was moved leaves its
	// name behind in the other list, where it is passed over.
	queued map[cache.ObjectName]urgency
	lists  [2][]cache.ObjectName
}

// urgency is an index of order.lists; the first is served first.
type urgency int

const (
	urgent urgency = iota
	patient
)

func newOrder() *order {
	return &order{asked: map[cache.ObjectName]urgency{}, queued: map[cache.ObjectName]urgency{}}
}

// hurry says that the key that is about to be added just changed.
func (o *order) hurry(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[key] = urgent
}

// mayWait says that the key that is about to be added can wait, unless it was
// also asked for urgently.
func (o *order) mayWait(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, isAsked := o.asked[key]; !isAsked {
		o.asked[key] = patient
	}
}

// Touch is called for a key that is queued already.
func (o *order) Touch(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if asked := o.take(key); asked < o.queued[key] {
		o.push(key, asked)
	}
}

// Push queues a key.
func (o *order) Push(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push(key, o.take(key))
}

// Len is how many keys are queued.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queued)
}

// Pop takes the next key; there is one.
func (o *order) Pop() cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at := range o.lists {
		list := &o.lists[at]
		for len(*list) > 0 {
			key := (*list)[0]
			(*list)[0] = cache.ObjectName{} // the array stays, the name needn't
			*list = (*list)[1:]
			if where, isQueued := o.queued[key]; isQueued && where == urgency(at) {
				delete(o.queued, key)
				return key
			}
		}
	}
	// The work queue asks only where Len isn't zero.
	panic("kit: Pop of an empty queue")
}

func (o *order) push(key cache.ObjectName, where urgency) {
	o.queued[key] = where
	o.lists[where] = append(o.lists[where], key)
}

// take returns how urgently the key was asked for. One that comes by itself,
// after a wait, is as urgent as the change that began it.
func (o *order) take(key cache.ObjectName) urgency {
	asked := o.asked[key]
	delete(o.asked, key)
	return asked
}
