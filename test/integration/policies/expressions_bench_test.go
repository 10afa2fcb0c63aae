// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// fillings are the sizes of the metadata that a tenant may fill. Annotations have room
// for 256 KiB, and etcd has no room for 46,000 owners. managedFields are the fields of
// one entry.
var fillings = map[string][]int{
	"annotations":   {0, 1_000, 46_000},
	"labels":        {0, 1_000, 46_000},
	"owners":        {0, 1_000, 12_000},
	"managedFields": {0, 1_000, 46_000},
}

var (
	anyMetadata = []string{"annotations", "labels", "owners"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ourKinds    = v1alpha1.GroupVersion
)

// expressionCase is one write that expressions of the chart look at.
type expressionCase struct {
	resource    schema.GroupVersionResource
	subresource string
	object      func(name string) client.Object
	// creator makes the object, and writer writes it; administrators if they are empty.
	creator, writer string
	patch           func(i int) string
	patchType       types.PatchType
	// manager is the name of the writer's field manager; empty: the API server chooses it.
	manager string
	// dryRun is for a write that cannot be repeated.
	dryRun bool
	// creates makes the object anew at each write, which is a dry run.
	creates bool
	fill    []string
	// refusedFrom is the size from which the Deny policy refuses the write.
	refusedFrom int
	// twin compares with a kind of the same schema in a group that no policy covers. The
	// policies of Plumbline's own kinds exclude no namespace.
	twin bool
}

// annotateOwned changes an annotation that fillMetadata gives to the apply of a manager, so
// that the entry of the manager loses a field.
func annotateOwned(i int) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, fillingKey(i), i)
}

func annotate(i int) string { return fmt.Sprintf(`{"metadata":{"annotations":{"x":"%d"}}}`, i) }

func deploymentObject(name string) client.Object {
	d := deployment(name)
	d.Spec.Paused = true
	return d
}

// datedObject is one that the executor may make for a day.
func datedObject(name string) client.Object {
	return dated(deploymentObject(name), time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339))
}

func podObject(name string) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:1"}}},
	}
}

func pause(i int) string { return fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, i%1000+1) }

func debug(i int) string {
	return fmt.Sprintf(`{"spec":{"ephemeralContainers":[{"name":"debug-%d","image":"shop:1"}]}}`, i)
}

// BenchmarkWebhookConditions measures a write that no webhook is called for: the match
// conditions of both configurations are its whole price.
func BenchmarkWebhookConditions(b *testing.B) {
	installWebhooks(b)
	c := &expressionCase{resource: deployments, object: deploymentObject, patch: annotate, fill: anyMetadata}
	c.run(b)
}

// BenchmarkPolicies measures writes that the other expressions of the chart look at, by
// the size of the metadata that a tenant may fill.
func BenchmarkPolicies(b *testing.B) {
	cases := map[string]*expressionCase{
		"writer, content changed":        {resource: deployments, object: deploymentObject, patch: pause, fill: anyMetadata},
		"writer, an apply loses a field": {resource: deployments, object: deploymentObject, manager: filledManager, patch: annotateOwned, fill: []string{"managedFields"}},
		"writer, an apply is stamped, an annotation changed": {resource: deployments, object: deploymentObject, fill: []string{"managedFields"},
			patch: func(i int) string {
				if i == 0 {
					return `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`
				}
				return annotate(i)
			}},
		"writer, stamp forged": {resource: deployments, object: deploymentObject, fill: []string{"annotations"},
			patch: func(i int) string {
				return fmt.Sprintf(`{"metadata":{"annotations":{"plumbline.dev/writer":"forged-%d"}}}`, i)
			}},
		"stamp-status, an annotation changed": {resource: deployments, subresource: "status", object: deploymentObject, patch: annotate, fill: []string{"annotations"}},
		"stamp-status, no annotation changed": {resource: deployments, subresource: "status", object: deploymentObject, fill: []string{"annotations"},
			patch: func(i int) string { return fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, i) }},
		"baselines, a person accepts": {resource: ourKinds.WithResource("baselines"), twin: true, creator: assessor, writer: "boss", fill: []string{"annotations", "labels"},
			object: func(name string) client.Object { return baseline(name) },
			patch: func(i int) string {
				return fmt.Sprintf(`{"spec":{"accept":{"hash":"pl1:sha256:%d","requestedBy":"boss"}}}`, i)
			}},
		"remediation, a plan is annotated": {resource: ourKinds.WithResource("remediationplans"), twin: true, creator: "boss", fill: []string{"annotations"},
			object: func(name string) client.Object { return remediationPlan(name, "boss") }, patch: annotate},
		"remediation, a policy is annotated": {resource: ourKinds.WithResource("remediationpolicies"), twin: true, creator: "boss", fill: []string{"annotations"},
			object: func(name string) client.Object { return remediationPolicy(name) }, patch: annotate},
		"remediation, a request is annotated": {resource: ourKinds.WithResource("remediationrequests"), twin: true, creator: "boss", fill: []string{"annotations"},
			object: func(name string) client.Object { return remediationRequest(name, "boss") }, patch: annotate},
		"executor-marks, the status of a baseline": {resource: ourKinds.WithResource("baselines"), subresource: "status", twin: true, creator: assessor, writer: assessor, fill: []string{"annotations"},
			object: func(name string) client.Object { return baseline(name) },
			patch:  func(i int) string { return fmt.Sprintf(`{"status":{"findingsTotal":%d}}`, i) }},
		"creations, the executor makes an object": {resource: deployments, object: datedObject, writer: executor, creates: true, fill: []string{"annotations"}},
		"remediation, a ledger is annotated": {resource: ourKinds.WithResource("remediationledgers"), twin: true, creator: executor, fill: []string{"annotations"},
			object: func(name string) client.Object {
				l := remediationLedger(name)
				l.Namespace = tenant
				return l
			}, patch: annotate},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		b.Run(name, cases[name].run)
	}
}

// BenchmarkDeny measures writes that the Deny policy looks at, under a guard of mode Deny.
func BenchmarkDeny(b *testing.B) {
	denyInTenant(b)
	cases := map[string]*expressionCase{
		"a trusted writer":          {resource: deployments, object: deploymentObject, creator: denyTrusts, writer: denyTrusts, patch: pause, fill: anyMetadata},
		"a stranger is refused":     {resource: deployments, object: deploymentObject, creator: denyTrusts, writer: "stranger", patch: pause, fill: anyMetadata, refusedFrom: -1},
		"a stranger annotates":      {resource: deployments, object: deploymentObject, creator: denyTrusts, writer: "stranger", patch: annotate, fill: anyMetadata},
		"a pod, a trusted writer":   podCase(denyTrusts, 0),
		"a pod, a stranger":         podCase("stranger", 65),
		"a pod, the job controller": podCase("system:serviceaccount:kube-system:job-controller", 65),
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		b.Run(name, cases[name].run)
	}
}

func podCase(writer string, refusedFrom int) *expressionCase {
	return &expressionCase{
		resource: pods, subresource: "ephemeralcontainers", object: podObject, writer: writer, patch: debug, patchType: types.StrategicMergePatchType,
		dryRun: true, fill: []string{"owners"}, refusedFrom: refusedFrom,
	}
}

// run measures each filling at each size: one write in the guarded namespace and the
// same one beside it, in turn.
func (c *expressionCase) run(b *testing.B) {
	for _, filling := range c.fill {
		for _, size := range fillings[filling] {
			b.Run(fmt.Sprintf("%s=%d", filling, size), func(b *testing.B) { c.measure(b, filling, size) })
		}
	}
}

func (c *expressionCase) measure(b *testing.B, filling string, size int) {
	refused := c.refusedFrom < 0 || c.refusedFrom > 0 && size >= c.refusedFrom
	here, beside := c.place(b, false, refused), c.place(b, true, false)
	here.create(filling, size)
	beside.create(filling, size)
	var tookHere, tookBeside []time.Duration
	for i := 0; b.Loop(); i++ {
		tookBeside = append(tookBeside, beside.write(i))
		tookHere = append(tookHere, here.write(i))
	}
	beside.remove()
	here.remove()
	slices.Sort(tookHere)
	slices.Sort(tookBeside)
	at := func(took []time.Duration, i int) float64 { return float64(took[i].Microseconds()) / 1000 }
	middle := len(tookHere) / 2
	b.ReportMetric(at(tookHere, middle), "p50-ms")
	b.ReportMetric(at(tookBeside, middle), "beside-p50-ms")
	b.ReportMetric(at(tookHere, middle)/at(tookBeside, middle), "ratio")
	// On a busy machine the least time says more than the median.
	b.ReportMetric(at(tookHere, 0)/at(tookBeside, 0), "min-ratio")
	b.ReportMetric(0, "ns/op")
}

// excluded is a namespace that all policies with a namespaceSelector leave out.
const excluded = rendered.Namespace
