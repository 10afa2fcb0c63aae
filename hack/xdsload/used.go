// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/control"
)

// used is what the replica has used so far, or in some time.
type used struct {
	at time.Time
	// cpu is that of the replica, own that of the proxies, and machine that of all processes.
	cpu, own, machine time.Duration
	// resident are all bytes of the replica, heap those of its objects, stacks those of its goroutines.
	resident, heap, stacks, goroutines float64
	// confirmed are the resources that proxies have acknowledged.
	confirmed float64
	// took is how long it was, of the usage in some time.
	took time.Duration
}

// used reads what the replica tells of itself.
func (p *path) used(ctx context.Context) (u used, err error) {
	seconds := 0.0
	for name, into := range map[string]*float64{
		"process_cpu_seconds_total": &seconds, "process_resident_memory_bytes": &u.resident, "go_memstats_heap_alloc_bytes": &u.heap,
		"go_memstats_stack_inuse_bytes": &u.stacks, "go_goroutines": &u.goroutines, "plumbline_xds_acknowledged_total": &u.confirmed,
	} {
		if *into, err = p.process.Metric(ctx, name); err != nil {
			return u, err
		}
	}
	own, err := control.Own(false)
	if err != nil {
		return u, err
	}
	u.at, u.cpu, u.own = time.Now(), time.Duration(seconds*float64(time.Second)), own.CPU
	u.machine, err = machine()
	return u, err
}

// less is what was used since another moment.
func (u used) less(before used) used {
	u.took = u.at.Sub(before.at)
	u.cpu, u.own, u.machine, u.confirmed = u.cpu-before.cpu, u.own-before.own, u.machine-before.machine, u.confirmed-before.confirmed
	return u
}

// share of a core that some processor time is.
func (u used) share(cpu time.Duration) float64 { return cpu.Seconds() / u.took.Seconds() }

func (u used) cores(cpu time.Duration) string { return fmt.Sprintf("%.2f", u.share(cpu)) }

// each is the processor time of the replica for one confirmation, with all else that the replica did.
func (u used) each() time.Duration { return u.cpu / time.Duration(max(1, u.confirmed)) }

// collected is what the replica uses after it has collected garbage several times.
func (p *path) collected(ctx context.Context) (used, error) {
	p.memories++
	if err := p.process.Signal(syscall.SIGUSR1); err != nil {
		return used{}, err
	}
	if err := p.written(ctx, fmt.Sprintf("memory-%d.pprof", p.memories)); err != nil {
		return used{}, err
	}
	return p.used(ctx)
}

// beginProfile has the replica profile its processor, if profiles are kept.
func (p *path) beginProfile() error {
	if p.kept == "" {
		return nil
	}
	p.processors++
	return p.process.Signal(syscall.SIGUSR2)
}

func (p *path) endProfile(ctx context.Context) error {
	if p.kept == "" {
		return nil
	}
	if err := p.process.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	return p.written(ctx, fmt.Sprintf("processor-%d.pprof", p.processors))
}

// written waits until the replica has written a profile.
func (p *path) written(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(filepath.Join(p.profiles, name)); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for a profile: %w", err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the profile %s: %w", name, ctx.Err())
		}
	}
}

// ticks of /proc/stat are a second.
const ticks = 100

// machine is the processor time of all processes so far.
func machine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the usage of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var user, nice, system, idle, waiting, interrupts, soft int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &interrupts, &soft); err != nil {
		return 0, fmt.Errorf("reading the usage of the machine: %w", err)
	}
	return time.Duration(user+nice+system+interrupts+soft) * (time.Second / ticks), nil
}
