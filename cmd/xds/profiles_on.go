// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"syscall"
)

// profilesVariable names the environment variable with the directory of profiles. Only a build with the
// tag failpoints reads it.
const profilesVariable = "PLUMBLINE_PROFILES"

// collections is how often garbage is collected for one measurement: stacks shrink by half at most with each.
const collections = 6

// profile obeys signals, if there is a directory for profiles. SIGUSR1 collects garbage and then writes the profile
// of the heap, memory-1.pprof and so on. SIGUSR2 begins the profile of the processor, and the next one ends it:
// processor-1.pprof and so on. A file is there when it is whole.
func profile(environment func(string) string) (stop func()) {
	directory := environment(profilesVariable)
	if directory == "" {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	p := profiles{directory: directory}
	var running sync.WaitGroup
	running.Go(func() {
		for s := range signals {
			do := p.memory
			if s == syscall.SIGUSR2 {
				do = p.processor
			}
			if err := do(); err != nil {
				fmt.Fprintln(os.Stderr, "error: profiling:", err)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		running.Wait()
	}
}

// profiles are numbered from 1, each kind by itself.
type profiles struct {
	directory string
	memories  int
	// processors counts the profiles that were begun, of which the last one is written to begun.
	processors int
	begun      *os.File
}

func (p *profiles) memory() error {
	p.memories++
	for range collections {
		debug.FreeOSMemory() // collects, too
	}
	file, err := os.Create(filepath.Join(p.directory, "memory"))
	if err != nil {
		return err
	}
	err = errors.Join(pprof.WriteHeapProfile(file), file.Close())
	return errors.Join(err, p.publish(file.Name(), p.memories))
}

func (p *profiles) processor() error {
	if p.begun != nil {
		pprof.StopCPUProfile()
		err := p.begun.Close()
		name := p.begun.Name()
		p.begun = nil
		return errors.Join(err, p.publish(name, p.processors))
	}
	file, err := os.Create(filepath.Join(p.directory, "processor"))
	if err != nil {
		return err
	}
	p.processors++
	p.begun = file
	return pprof.StartCPUProfile(file)
}

// publish a profile that is whole.
func (p *profiles) publish(name string, n int) error {
	return os.Rename(name, fmt.Sprintf("%s-%d.pprof", name, n))
}
