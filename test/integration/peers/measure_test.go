// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/procfs"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// variant is a namespace, by its name, with the policies and webhooks that select it.
type variant struct {
	name string
	// warning is a part of the warning that an untrusted writer of a Deployment reads;
	// empty for none.
	warning string
	// stamped says whether the writer policy stamps the writer of a Deployment.
	stamped bool
}

// cell is one kind of writes.
type cell struct {
	kind    kind
	writers int
	user    string
	block   int     // writes of one writer before it is the turn of another variant
	weight  float64 // of its share of the time
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s writer, writers %d", c.kind.name, c.trust(), c.writers)
}

func (c cell) trust() string {
	switch c.user {
	case trusted:
		return "trusted"
	case untrusted:
		return "untrusted"
	default:
		return "controller"
	}
}

// wantedWarning is a part of the warning that each write of a cell gets; empty for none.
func (c cell) wantedWarning(v variant) string {
	if c.user == untrusted {
		return v.warning
	}
	return ""
}

// measured are the measurements of a variant in a cell.
type measured struct {
	took   []time.Duration
	blocks []time.Duration // the median of each block
	warned int
	cpu    map[string]time.Duration // by the name of the process
	series map[string]float64       // of the API server's own metrics, see scrape
}

// bench is common to all cells.
type bench struct {
	*testing.B
	world     *world
	scene     *scene
	variants  []variant
	processes map[string]int // by name
	// scrapes says whether to read the metrics of the API server around each block.
	scrapes bool
}

const (
	// pause lets the rest of a block, such as Events, come to its end in the
	// account of its variant.
	pause = 150 * time.Millisecond
	// defaultDuration of all cells.
	defaultDuration = 9 * time.Minute
)

// duration of all cells, from PLUMBLINE_BENCH_DURATION.
func duration(b *testing.B) time.Duration {
	b.Helper()
	text := os.Getenv("PLUMBLINE_BENCH_DURATION")
	if text == "" {
		return defaultDuration
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// run measures a cell until its time is over: in each round each variant has one block,
// and another one begins.
func (b *bench) run(c cell, d time.Duration) map[string]*measured {
	b.Helper()
	result := map[string]*measured{}
	for _, v := range b.variants {
		result[v.name] = &measured{cpu: map[string]time.Duration{}, series: map[string]float64{}}
		b.writeBlock(c, v) // The first block is not counted.
	}
	deadline := time.Now().Add(d)
	for round := 0; round < 2 || time.Now().Before(deadline); round++ {
		for n := range b.variants {
			v := b.variants[(n+round)%len(b.variants)]
			b.runBlock(c, v, result[v.name])
		}
	}
	for _, v := range b.variants {
		if err := b.checkStamp(c, v); err != nil {
			b.Errorf("%s in the namespace %s: %v", c, v.name, err)
		}
	}
	return result
}

// runBlock makes one block, with the pause after it, and adds its cost.
func (b *bench) runBlock(c cell, v variant, into *measured) {
	b.Helper()
	var page map[string]float64
	if b.scrapes {
		page = scrape(b.B, b.world)
	}
	before := b.cpu()
	took, warned := b.writeBlock(c, v)
	<-time.After(pause)
	for name, after := range b.cpu() {
		into.cpu[name] += after - before[name]
	}
	if b.scrapes {
		for name, value := range scrape(b.B, b.world) {
			into.series[name] += value - page[name]
		}
	}
	into.took = append(into.took, took...)
	into.blocks = append(into.blocks, quantile.Of(took, 50))
	into.warned += warned
}

func (b *bench) cpu() map[string]time.Duration {
	b.Helper()
	used := map[string]time.Duration{}
	for name, pid := range b.processes {
		s, err := procfs.ReadStat(pid)
		if err != nil {
			b.Fatalf("%s ended: %v", name, err)
		}
		used[name] = s.Processor
	}
	return used
}

// writeBlock makes the writes of one block, and ends the benchmark when one of them
// failed or had not the warning that it should have.
func (b *bench) writeBlock(c cell, v variant) (took []time.Duration, warned int) {
	b.Helper()
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for writer := range c.writers {
		wg.Go(func() {
			for n := range c.block {
				d, said, err := b.writeOnce(c, v, c.kind.objectName(writer, n%perWriter))
				mu.Lock()
				took = append(took, d)
				if said.lines > 0 {
					warned++
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if failed != nil {
		b.Fatalf("%s in the namespace %s: %v", c, v.name, failed)
	}
	return took, warned
}

// writeOnce makes one write, and checks its warnings.
func (b *bench) writeOnce(c cell, v variant, name string) (time.Duration, warnings, error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	took, said, err := b.scene.write(ctx, c, v.name, name)
	want := c.wantedWarning(v)
	switch {
	case err != nil:
		return took, said, fmt.Errorf("writing %s: %w", name, err)
	case want == "" && said.lines > 0:
		return took, said, fmt.Errorf("writing %s: the warning %q, want none", name, said.last)
	case want != "" && (said.lines == 0 || !strings.Contains(said.last, want)):
		return took, said, fmt.Errorf("writing %s: %d warnings, the last %q, want one with %q", name, said.lines, said.last, want)
	}
	return took, said, nil
}

// awaitVerdicts waits until the writes of a cell get the warnings that they should get
// in each variant: policies and webhooks come into force by and by.
func (b *bench) awaitVerdicts(c cell) {
	b.Helper()
	for _, v := range b.variants {
		eventually(b.B, fmt.Sprintf("%s has its verdict in %s", c, v.name), func() error {
			if _, _, err := b.writeOnce(c, v, c.kind.objectName(0, 0)); err != nil {
				return err
			}
			return b.checkStamp(c, v)
		})
	}
}

// checkStamp checks that the last write of a Deployment was stamped where the writer
// policy holds, and only there.
func (b *bench) checkStamp(c cell, v variant) error {
	if c.kind.replicaSet {
		return nil
	}
	deployments := b.scene.clients[c.user].AppsV1().Deployments(v.name)
	written, err := deployments.Get(b.Context(), c.kind.objectName(0, 0), metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := ""
	if v.stamped {
		want = c.user
	}
	if got := written.Annotations[v1alpha1.AnnotationWriter]; got != want {
		return fmt.Errorf("the writer in the stamp is %q, want %q", got, want)
	}
	return nil
}
