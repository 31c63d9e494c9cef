// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"slices"
	"time"
)

const (
	// nearly is how much a replica may still have to execute when it is called
	// current for the first time: a file of the log.
	nearly lsn = 16 << 20
	// tolerance is how far behind a replica may be without being called that: what
	// a burst of writes takes to arrive and be executed is no news.
	tolerance = 15 * time.Second
	// remembered is how many sights are remembered, at most.
	remembered = 128
)

// pace is how a replica keeps up with its source, as seen from one answer to the
// next.
type pace struct {
	isCurrent bool
	// sights are when the source was seen to be at a place that the replica hasn't
	// executed yet, oldest first. So the lag is measured by one clock, ours, and is
	// never overstated where the source rested.
	sights []sight
}

type sight struct {
	at    time.Time
	place lsn
}

// see takes in how far the source is, as the replica knows, and how far the
// replica has executed. It returns by how much, at least, the replica is behind.
func (p *pace) see(now time.Time, source, executed lsn) time.Duration {
	p.sights = slices.DeleteFunc(p.sights, func(s sight) bool { return s.place <= executed || s.place > source })
	if source > executed && (len(p.sights) == 0 || p.sights[len(p.sights)-1].place < source) {
		if len(p.sights) == remembered {
			p.thin()
		}
		p.sights = append(p.sights, sight{now, source})
	}
	lag := time.Duration(0)
	if len(p.sights) > 0 {
		lag = now.Sub(p.sights[0].at)
	}
	isNear := source <= executed || source-executed <= nearly
	p.isCurrent = (isNear || p.isCurrent) && lag < tolerance
	return lag
}

// thin forgets every second sight, but the oldest.
func (p *pace) thin() {
	kept := p.sights[:0]
	for i, s := range p.sights {
		if i%2 == 0 {
			kept = append(kept, s)
		}
	}
	p.sights = kept
}

// lose forgets all: the replica doesn't receive.
func (p *pace) lose() { *p = pace{} }
