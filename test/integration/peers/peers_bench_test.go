// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/quantile"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// The warnings of both, in part.
const (
	plumblineSays = "plumbline: "
	kyvernoSays   = "trusted-writers"
)

// The variants of BenchmarkPeers.
var (
	neither       = variant{name: "neither"}
	onlyPolicies  = variant{name: "policies", stamped: true}
	onlyMutating  = variant{name: "mutating", warning: plumblineSays}
	withPlumbline = variant{name: "plumbline", warning: plumblineSays, stamped: true}
	withKyverno   = variant{name: "with-kyverno", warning: kyvernoSays}
)

// peersCells are the cells of BenchmarkPeers.
func peersCells() []cell {
	var cells []cell
	for _, user := range []string{trusted, untrusted} {
		cells = append(cells,
			cell{kind: small, writers: 1, user: user, block: 60, weight: 1},
			cell{kind: small, writers: 8, user: user, block: 20, weight: 1},
			cell{kind: medium, writers: 1, user: user, block: 40, weight: 1},
			cell{kind: medium, writers: 8, user: user, block: 12, weight: 1},
			cell{kind: large, writers: 1, user: user, block: 12, weight: 1.5},
			cell{kind: large, writers: 8, user: user, block: 4, weight: 1.5},
		)
	}
	return append(cells,
		cell{kind: replica, writers: 1, user: controller, block: 60, weight: .5},
		cell{kind: replica, writers: 8, user: controller, block: 20, weight: .5},
	)
}

// BenchmarkPeers measures the latency that Plumbline adds to one write, beside Kyverno's
// ValidatingPolicy. Each variant has a namespace in the same API server, and the
// variants take turns in short blocks. Nothing is asserted of the times; each write must
// succeed, with the warning that it should have. Each iteration is one run; use
// -benchtime 1x.
func BenchmarkPeers(b *testing.B) {
	w := newWorld(b)
	peers := &bench{B: b, world: w, variants: []variant{neither, onlyPolicies, onlyMutating, withPlumbline, withKyverno}}
	p := startPlumbline(b, w, renderChart(b), func(object *unstructured.Unstructured) []string {
		switch object.GetKind() {
		case mutatingKind:
			return []string{onlyMutating.name, withPlumbline.name}
		case validatingKind:
			return []string{withPlumbline.name}
		default:
			return []string{onlyPolicies.name, withPlumbline.name}
		}
	})
	k := startKyverno(b, w)
	createKyvernoPolicy(b, w, withKyverno.name)
	peers.processes = map[string]int{"API server": w.apiserver, "webhook": p.PID(), "Redis": p.redis, "Kyverno": k.cmd.Process.Pid}
	peers.prepare(p, small, medium, large, replica)
	peers.awaitVerdicts(cell{kind: small, writers: 1, user: untrusted})
	for b.Loop() {
		b.Logf("load average at the start %s", loadAverage(b))
		before := metricsPage(b, w)
		cells := peersCells()
		results := peers.runAll(cells, duration(b))
		after := metricsPage(b, w)
		b.Logf("load average at the end %s\n\n%s\n\n%s\n\n%s", loadAverage(b), latencies(cells, peers.variants, results),
			ratios(cells, results), processors(cells, peers.variants, results))
		peers.logMemory()
		peers.checkCalls(p, before, after, results)
		b.ReportMetric(0, "ns/op")
	}
}

// prepare makes the namespaces, the guards and the objects.
func (b *bench) prepare(p *plumbline, kinds ...kind) {
	b.Helper()
	b.scene = newScene(b.B, b.world)
	for _, v := range b.variants {
		if err := b.world.admin.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.name}}); err != nil {
			b.Fatal(err)
		}
		if v != neither && v != withKyverno {
			p.guard(b.B, b.world, v.name)
		}
		for _, k := range kinds {
			b.scene.create(b.B, k, v.name)
		}
	}
}

// runAll measures the cells one after another, each with its share of the time.
func (b *bench) runAll(cells []cell, d time.Duration) []map[string]*measured {
	b.Helper()
	var weights float64
	for _, c := range cells {
		weights += c.weight
	}
	var results []map[string]*measured
	before := metricsPage(b.B, b.world)
	for _, c := range cells {
		results = append(results, b.run(c, time.Duration(float64(d)*c.weight/weights)))
		after := metricsPage(b.B, b.world)
		b.checkFailures(c, before, after)
		before = after
	}
	return results
}

// checkFailures fails the benchmark when a call of a webhook or a condition failed while
// a cell was measured.
func (b *bench) checkFailures(c cell, before, after string) {
	b.Helper()
	for _, metric := range []string{
		"apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count", "apiserver_admission_match_condition_evaluation_errors_total",
	} {
		for _, owner := range []string{"plumbline", "kyverno"} {
			if n := sumOf(b.B, after, metric, owner) - sumOf(b.B, before, metric, owner); n != 0 {
				b.Errorf("%s: %s of %s grew by %v", c, metric, owner, n)
			}
		}
	}
}

// latencies is the table of each cell and variant.
func latencies(cells []cell, variants []variant, results []map[string]*measured) *table {
	t := &table{}
	t.head("Write", "Writer", "Writers", "Variant", "n", "p50, ms", "p99, ms", "mean, ms", "p50 added (quartiles of rounds)", "p99 added", "warned")
	for n, c := range cells {
		for _, v := range variants {
			m := results[n][v.name]
			a, more := addedTo(results[n][neither.name], m), []string{"", ""}
			if v != neither {
				more = []string{fmt.Sprintf("%s (%s to %s)", ms(a.p50), ms(a.low), ms(a.high)), ms(a.p99)}
			}
			t.row(c.kind.name, c.trust(), fmt.Sprint(c.writers), v.name, fmt.Sprint(len(m.took)),
				ms(quantile.Of(m.took, 50)), ms(quantile.Of(m.took, 99)), ms(mean(m.took)), more[0], more[1], fmt.Sprint(m.warned))
		}
	}
	return t
}

// ratios compares the additions of Plumbline and of Kyverno.
func ratios(cells []cell, results []map[string]*measured) *table {
	t := &table{}
	t.head("Write", "Writer", "Writers", "p50 added: Plumbline / Kyverno", "ratio", "p99 added: Plumbline / Kyverno", "ratio", "mean added: Plumbline / Kyverno", "ratio")
	for n, c := range cells {
		if c.kind.replicaSet { // Neither of both judges them.
			continue
		}
		reference := results[n][neither.name]
		ours, theirs := addedTo(reference, results[n][withPlumbline.name]), addedTo(reference, results[n][withKyverno.name])
		our := mean(results[n][withPlumbline.name].took) - mean(reference.took)
		their := mean(results[n][withKyverno.name].took) - mean(reference.took)
		t.row(c.kind.name, c.trust(), fmt.Sprint(c.writers),
			ms(ours.p50)+" / "+ms(theirs.p50), ratio(ours.p50, theirs.p50),
			ms(ours.p99)+" / "+ms(theirs.p99), ratio(ours.p99, theirs.p99),
			ms(our)+" / "+ms(their), ratio(our, their))
	}
	return t
}

// processors is the table of the processor time of one write.
func processors(cells []cell, variants []variant, results []map[string]*measured) *table {
	t := &table{}
	columns := []string{"API server", "webhook", "Redis", "Kyverno"}
	t.head(append([]string{"Write", "Writer", "Writers", "Variant"}, "API server, ms of a processor a write", "webhook", "Redis", "Kyverno")...)
	for n, c := range cells {
		for _, v := range variants {
			m := results[n][v.name]
			row := []string{c.kind.name, c.trust(), fmt.Sprint(c.writers), v.name}
			for _, process := range columns {
				row = append(row, ms(m.cpu[process]/time.Duration(len(m.took))))
			}
			t.row(row...)
		}
	}
	return t
}

// logMemory tells the memory of the processes.
func (b *bench) logMemory() {
	b.Helper()
	for name, pid := range b.processes {
		now, peak, err := replay.ResidentBytes(pid)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %d MiB resident, at its peak %d MiB", name, now>>20, peak>>20)
	}
}

// checkCalls fails the benchmark when a call failed, and tells how many calls were made.
func (b *bench) checkCalls(p *plumbline, before, after string, results []map[string]*measured) {
	b.Helper()
	delta := func(name string, labels ...string) float64 {
		return sumOf(b.B, after, name, labels...) - sumOf(b.B, before, name, labels...)
	}
	hook := func(name string) float64 {
		n, err := p.Metric(b.Context(), name)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	if n := hook("plumbline_admission_unassessed_total"); n != 0 {
		b.Errorf("the webhook let %v reviews pass unassessed", n)
	}
	writes := map[string]int{}
	for _, result := range results {
		for name, m := range result {
			writes[name] += len(m.took)
		}
	}
	const calls = "apiserver_admission_webhook_request_total"
	b.Logf("counted writes by namespace: %v", writes)
	b.Logf("calls, those of blocks that are not counted included: plumbline.dev %v, kyverno %v; failed open: %v",
		delta(calls, "plumbline.dev"), delta(calls, "kyverno"), delta("apiserver_admission_webhook_fail_open_count"))
	b.Logf("the webhook since its start: %v TLS handshakes, %v records written, %v dropped",
		hook("plumbline_admission_handshakes_total"), hook("plumbline_admission_records_written_total"), hook("plumbline_admission_records_dropped_total"))
}

// loadAverage is that of the machine.
func loadAverage(b *testing.B) string {
	b.Helper()
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}
