// Package progress tells a person what is being done, how far it is and how long it took.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Printer writes one line per step. On a terminal, the current step's line is redrawn; elsewhere a line is written
// at most every quietInterval, so that a log stays short.
type Printer struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
}

const quietInterval = 30 * time.Second

// NewPrinter writes to file.
func NewPrinter(file *os.File) *Printer {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return &Printer{out: file, terminal: err == nil}
}

// Printf writes a line.
func (p *Printer) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, p.clear()+format+"\n", args...) // a lost progress line harms nothing
}

func (p *Printer) clear() string {
	if p.terminal {
		return "\r\x1b[K"
	}
	return ""
}

// Step is one piece of work under way.
type Step struct {
	printer *Printer
	name    string
	start   time.Time
	last    time.Time
}

// Start announces a step.
func (p *Printer) Start(name string) *Step {
	now := time.Now()
	p.Printf("%s …", name)
	return &Step{printer: p, name: name, start: now, last: now}
}

// Update tells how far the step is.
func (s *Step) Update(format string, args ...any) {
	now := time.Now()
	interval := quietInterval
	if s.printer.terminal {
		interval = 200 * time.Millisecond
	}
	if now.Sub(s.last) < interval {
		return
	}
	s.last = now
	line := fmt.Sprintf("%s: %s, %s", s.name, fmt.Sprintf(format, args...), s.elapsed())
	if !s.printer.terminal {
		s.printer.Printf("%s", line)
		return
	}
	s.printer.mu.Lock()
	defer s.printer.mu.Unlock()
	_, _ = fmt.Fprint(s.printer.out, s.printer.clear()+line) // as above
}

// Done ends the step with what came of it.
func (s *Step) Done(format string, args ...any) {
	s.printer.Printf("%s: %s (%s)", s.name, fmt.Sprintf(format, args...), s.elapsed())
}

func (s *Step) elapsed() time.Duration {
	elapsed := time.Since(s.start)
	if elapsed < 10*time.Second {
		return elapsed.Round(100 * time.Millisecond)
	}
	return elapsed.Round(time.Second)
}
