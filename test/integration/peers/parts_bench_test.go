// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// part is a variant with some of the chart's objects, which may be changed.
type part struct {
	variant
	policies, mutating, validating bool
	change                         func(*unstructured.Unstructured)
}

func unchanged(*unstructured.Unstructured) {}

// parts are the variants of BenchmarkParts beside those of the whole and of neither.
func parts() []part {
	return []part{
		{variant{name: "never-reinvoked", warning: plumblineSays, stamped: true}, true, true, true, reinvokeNever},
		{variant{name: "no-conditions", warning: plumblineSays, stamped: true}, true, true, true, dropConditions},
		{variant{name: "patch-always", warning: plumblineSays, stamped: true}, true, true, true, patchAlways},
		{variant{name: "writer-policy", stamped: true}, true, false, false, onlyWriterPolicy(unchanged)},
		{variant{name: "writer-policy-no-condition", stamped: true}, true, false, false, onlyWriterPolicy(dropConditions)},
		{variant{name: "writer-policy-empty-patch"}, true, false, false, onlyWriterPolicy(emptyPatch)},
		{variant{name: "writer-policy-patch-always", stamped: true}, true, false, false, onlyWriterPolicy(patchAlways)},
		{variant{name: "deny-policy"}, true, false, false, onlyPolicy("plumbline-deny")},
		{variant{name: "mutating", warning: plumblineSays}, false, true, false, unchanged},
		{variant{name: "mutating-no-condition", warning: plumblineSays}, false, true, false, dropConditions},
		{variant{name: "condition-of-writer-policy"}, true, false, false, onlyWriterPolicy(neverMatch)},
		{variant{name: "condition-of-mutating"}, false, true, false, neverMatch},
		{variant{name: "condition-of-validating"}, false, false, true, neverMatch},
	}
}

// wants says whether the part has an object of the chart, or its like.
func (p part) wants(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case mutatingKind:
		return p.mutating
	case validatingKind:
		return p.validating
	default:
		return p.policies
	}
}

func reinvokeNever(object *unstructured.Unstructured) {
	if _, is, _ := unstructured.NestedString(object.Object, "spec", "reinvocationPolicy"); is {
		_ = unstructured.SetNestedField(object.Object, "Never", "spec", "reinvocationPolicy")
	}
	eachWebhook(object, func(webhook map[string]any) {
		if _, is := webhook["reinvocationPolicy"]; is {
			webhook["reinvocationPolicy"] = "Never"
		}
	})
}

// dropConditions leaves those of the Deny policy, whose conditions read a parameter.
func dropConditions(object *unstructured.Unstructured) {
	if _, is, _ := unstructured.NestedMap(object.Object, "spec", "paramKind"); !is {
		unstructured.RemoveNestedField(object.Object, "spec", "matchConditions")
	}
	eachWebhook(object, func(webhook map[string]any) { delete(webhook, "matchConditions") })
}

// neverMatch has the API server evaluate the match conditions, and then no more.
func neverMatch(object *unstructured.Unstructured) {
	never := func(of map[string]any) {
		conditions, _ := of["matchConditions"].([]any)
		of["matchConditions"] = append(slices.Clone(conditions), map[string]any{"name": "never", "expression": "false"})
	}
	if spec, is := object.Object["spec"].(map[string]any); is && object.GetKind() == "MutatingAdmissionPolicy" {
		never(spec)
	}
	eachWebhook(object, never)
}

func eachWebhook(object *unstructured.Unstructured, change func(map[string]any)) {
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		change(webhook.(map[string]any))
	}
}

// emptyPatch has the writer policy evaluate its variables to the same values and patch
// nothing.
func emptyPatch(object *unstructured.Unstructured) {
	mutations, is, _ := unstructured.NestedSlice(object.Object, "spec", "mutations")
	if !is {
		return
	}
	mutations[0].(map[string]any)["jsonPatch"] = map[string]any{
		"expression": `variables.writer.hasValue() && variables.writerGroups.orValue("") == "none" ? [JSONPatch{op: "add", path: "/metadata/annotations/none", value: "none"}] : []`,
	}
	_ = unstructured.SetNestedSlice(object.Object, mutations, "spec", "mutations")
}

// patchAlways has the writer policy patch each write that changes content, also where
// the object has the right stamp already.
func patchAlways(object *unstructured.Unstructured) {
	variables, is, _ := unstructured.NestedSlice(object.Object, "spec", "variables")
	if object.GetKind() != "MutatingAdmissionPolicy" || !is {
		return
	}
	expressions := map[string]string{}
	for _, v := range variables {
		v := v.(map[string]any)
		expressions[v["name"].(string)] = v["expression"].(string)
	}
	_ = unstructured.SetNestedSlice(object.Object, []any{map[string]any{
		"name": "content-changed", "expression": expressions["contentChanged"],
	}}, "spec", "matchConditions")
}

// onlyWriterPolicy leaves of the policies the one that stamps the writer.
func onlyWriterPolicy(change func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
	only := onlyPolicy("plumbline-writer")
	return func(object *unstructured.Unstructured) { only(object); change(object) }
}

// onlyPolicy unnames each policy but one; an object without a name is not created.
func onlyPolicy(name string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if object.GetName() != name {
			object.SetName("")
		}
	}
}

// BenchmarkParts measures the addition of each part of Plumbline to one write, each in a
// namespace of its own: by the clock of the client, and by the API server's own
// histograms. It takes profiles of the API server, while writes are judged and while
// they are not, into bin/peers. Each iteration is one run; use -benchtime 1x.
func BenchmarkParts(b *testing.B) {
	w := newWorld(b)
	whole := bench{B: b, world: w, variants: []variant{neither, withPlumbline}, scrapes: true}
	chart := renderChart(b)
	p := startPlumbline(b, w, chart, func(*unstructured.Unstructured) []string { return []string{withPlumbline.name} })
	for _, part := range parts() {
		whole.variants = append(whole.variants, part.variant)
		whole.installPart(p, part)
	}
	whole.processes = map[string]int{"API server": w.apiserver, "webhook": p.PID(), "Redis": p.redis}
	whole.prepare(p, small, medium, large)
	whole.awaitVerdicts(cell{kind: small, writers: 1, user: untrusted})
	cells := []cell{
		{kind: small, writers: 1, user: trusted, block: 60, weight: 2},
		{kind: small, writers: 1, user: untrusted, block: 60, weight: 1},
		{kind: medium, writers: 1, user: trusted, block: 40, weight: 1},
		{kind: large, writers: 1, user: trusted, block: 12, weight: 1.5},
	}
	for b.Loop() {
		b.Logf("load average at the start %s", loadAverage(b))
		before := metricsPage(b, w)
		results := whole.runAll(cells, duration(b)/2)
		after := metricsPage(b, w)
		b.Logf("load average at the end %s\n\n%s\n\n%s", loadAverage(b), latencies(cells, whole.variants, results), histograms(cells, whole.variants, results))
		whole.checkCalls(p, before, after, results)
		for _, v := range []variant{neither, withPlumbline} {
			whole.profile(cell{kind: small, writers: 2, user: trusted, block: 50}, v)
			whole.profile(cell{kind: large, writers: 2, user: trusted, block: 10}, v)
		}
		b.ReportMetric(0, "ns/op")
	}
}

// installPart makes copies of the chart's objects, under other names, that hold in the
// namespace of the part alone.
func (b *bench) installPart(p *plumbline, part part) {
	b.Helper()
	for _, object := range b.world.published(b.B, p) {
		if !part.wants(object) {
			continue
		}
		part.change(object)
		if object.GetName() == "" {
			continue
		}
		if isWebhook(object) || holdsInNamespaces(object) {
			object = p.confine(b.B, object, part.name)
		}
		if policy, is, _ := unstructured.NestedString(object.Object, "spec", "policyName"); is {
			_ = unstructured.SetNestedField(object.Object, policy+"-"+part.name, "spec", "policyName")
		}
		object.SetName(object.GetName() + "-" + part.name)
		if err := b.world.admin.Create(b.Context(), object); err != nil {
			b.Fatalf("creating %s for the part %s: %v", rendered.ID(object), part.name, err)
		}
	}
}

// published are the chart's policies with their bindings, and its webhooks with the
// authority that the webhook process has written into the configurations.
func (w *world) published(b *testing.B, p *plumbline) []*unstructured.Unstructured {
	b.Helper()
	var found []*unstructured.Unstructured
	policies := map[string]bool{}
	for _, object := range p.chart {
		if holdsInNamespaces(object) {
			policies[object.GetName()] = true
		}
	}
	for _, object := range p.chart {
		switch {
		case isWebhook(object):
			live := object.DeepCopy()
			if err := w.admin.Get(b.Context(), client.ObjectKeyFromObject(object), live); err != nil {
				b.Fatal(err)
			}
			found = append(found, withAuthority(object, live))
		case policies[object.GetName()] && strings.Contains(object.GetKind(), "AdmissionPolicy"):
			found = append(found, object.DeepCopy())
		}
	}
	return found
}

// withAuthority copies the authorities of the live webhooks into the rendered ones.
func withAuthority(object, live *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	authorities := map[any]any{}
	eachWebhook(live, func(webhook map[string]any) {
		authorities[webhook["name"]] = webhook["clientConfig"].(map[string]any)["caBundle"]
	})
	eachWebhook(object, func(webhook map[string]any) {
		webhook["clientConfig"].(map[string]any)["caBundle"] = authorities[webhook["name"]]
	})
	return object
}

// histograms is the table of the API server's own histograms: for each variant how often
// a step was made in one write, and how long all of them took.
func histograms(cells []cell, variants []variant, results []map[string]*measured) *table {
	t := &table{}
	t.head("Write", "Writer", "Variant", "Series", "times a write", "µs a write")
	for n, c := range cells {
		for _, v := range variants {
			m := results[n][v.name]
			writes := float64(len(m.took))
			for _, key := range slices.Sorted(maps.Keys(m.series)) {
				name, labels, _ := strings.Cut(key, " ")
				histogram, is := strings.CutSuffix(name, "_sum")
				count := m.series[histogram+"_count "+labels]
				if !is || count == 0 || m.series[key]/writes < 5e-6 {
					continue
				}
				t.row(c.kind.name, c.trust(), v.name, histogram+" "+labels, fmt.Sprintf("%.2f", count/writes), fmt.Sprintf("%.0f", 1e6*m.series[key]/writes))
			}
		}
	}
	return t
}

// profileTime is how long a profile is taken.
const profileTime = 15 * time.Second

// profile takes a profile of the processor time of the API server while writes of one
// variant are made, and keeps it in bin/peers.
func (b *bench) profile(c cell, v variant) {
	b.Helper()
	folder := filepath.Join(rendered.RepositoryDir(), "bin", "peers")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(b.world.config)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 2*profileTime)
	defer cancel()
	done := make(chan error, 1)
	path := filepath.Join(folder, fmt.Sprintf("apiserver-%s-%s.pprof", c.kind.prefix, v.name))
	go func() {
		raw, err := clientset.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", fmt.Sprint(int(profileTime.Seconds()))).DoRaw(ctx)
		done <- errors.Join(err, os.WriteFile(path, raw, 0o600))
	}()
	for writes := 0; ; {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			b.Logf("%s: %d writes in a profile of %v", path, writes, profileTime)
			return
		default:
			took, _ := b.writeBlock(c, v)
			writes += len(took)
		}
	}
}
