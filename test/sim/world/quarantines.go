// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

const (
	// front is the Service whose requests the targets serve, and which no plan is about.
	front      = "front"
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices/"
	// bystander is a workload of the Service that no guard selects.
	bystander = "bystander"
)

// meshKinds are the kinds that tell what proxies serve.
func meshKinds() []apiserver.Resource {
	return []apiserver.Resource{
		{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Status: true},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Kind: "EndpointSlice", Namespaced: true},
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true},
	}
}

// quarantine has plans put their targets into quarantine, and an assessor end the quarantines.
func (c *scenario) quarantine(rng *rand.Rand) {
	c.action, c.kind, c.gone = v1alpha1.ActionQuarantine, &deployments, false
	c.mesh = rng.IntN(8) > 0
	c.messages += 100
	c.hire(
		eager("kubelet", "kubelet", (*person).changesEndpoints),
		eager("lifter", "alice", (*person).lifts), eager("ender", "alice", (*person).endsQuarantine),
		eager("second-ender", "alice", (*person).endsQuarantine), eager("third-ender", "alice", (*person).endsQuarantine),
	)
}

// quarantines says that the plans of a world put targets into quarantine.
func (w *World) quarantines() bool { return w.policy.Spec.Action == v1alpha1.ActionQuarantine }

// backend is a workload of the Service, and whether its endpoint is ready.
type backend struct {
	workload string
	ready    bool
}

// addMesh stores a managed Service, and the pods of the targets and of the bystander.
func (w *World) addMesh() {
	http := "http"
	w.store("", "v1", "services", namespace, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: front, Labels: map[string]string{ir.Managed: "true"}},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1"}, Ports: []corev1.ServicePort{{Name: http, Port: 80, AppProtocol: &http}}},
	})
	all := w.backends(func(string) bool { return true })
	for i, b := range all {
		w.store("", "v1", "pods", namespace, podOf(i, b))
	}
	w.store("discovery.k8s.io", "v1", "endpointslices", namespace, &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: front, Labels: map[string]string{discoveryv1.LabelServiceName: front}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: new(int32(8080))}},
		Endpoints: endpointsOf(all),
	})
}

// backends are those of the Service, of which some are ready.
func (w *World) backends(ready func(workload string) bool) []backend {
	all := []backend{{bystander, ready(bystander)}}
	for _, t := range w.targets {
		all = append(all, backend{t.name, ready(t.name)})
	}
	return all
}

func addressOf(i int) string { return fmt.Sprintf("10.1.0.%d", i+1) }

func podOf(i int, b backend) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: b.workload + "-1-x", Labels: map[string]string{"pod-template-hash": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: b.workload + "-1", Controller: new(true)}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: addressOf(i)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// endpointsOf leaves out the workloads that the Service does not select any more.
func endpointsOf(all []backend) []discoveryv1.Endpoint {
	var endpoints []discoveryv1.Endpoint
	for i, b := range all {
		endpoints = append(endpoints, discoveryv1.Endpoint{
			Addresses: []string{addressOf(i)}, Conditions: discoveryv1.EndpointConditions{Ready: &b.ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: b.workload + "-1-x"},
		})
	}
	return endpoints
}

// changesEndpoints has endpoints be unready for a while, or the Service select no target at all.
func (p *person) changesEndpoints() {
	ready := pick(p.Rand(),
		func(workload string) bool { return workload != bystander }, func(workload string) bool { return workload == "web" },
		func(string) bool { return p.Rand().IntN(3) > 0 },
	)
	endpoints := endpointsOf(p.w.backends(ready))
	if p.Rand().IntN(5) == 0 {
		endpoints = endpoints[:1]
	}
	p.sendEndpoints(endpoints)
	p.Sleep(time.Duration(p.Rand().Int64N(int64(time.Minute))))
	p.sendEndpoints(endpointsOf(p.w.backends(func(string) bool { return true })))
}

func (p *person) sendEndpoints(endpoints []discoveryv1.Endpoint) {
	if p.ask(http.MethodPatch, slicesPath+front, mergePatch, apiserver.Object{"endpoints": endpoints}) != nil {
		p.w.count("change of endpoints")
	}
}

// lifts the quarantine of a target, or asks with the token of another one.
func (p *person) lifts() {
	path := baselinesPath + p.some().baseline
	o := p.ask(http.MethodGet, path, "", nil)
	if o == nil {
		return
	}
	token := "of-another-quarantine"
	if q := typed[v1alpha1.Baseline](o).Status.Quarantine; q != nil && p.Rand().IntN(5) > 0 {
		token = q.Token
	}
	p.ask(http.MethodPatch, path, mergePatch, apiserver.Object{"spec": map[string]any{"lift": map[string]any{"token": token, "requestedBy": "alice"}}})
	p.w.count("request to lift a quarantine")
}

// endsQuarantine waits for a quarantine, and then does what ends it.
func (p *person) endsQuarantine() {
	p.Await(p.w.watch(beginsQuarantine), 10*time.Minute)
	if p.w.calm.Load() {
		return
	}
	p.Sleep(time.Duration(p.Rand().Int64N(int64(20 * time.Second))))
	pick(p.Rand(), (*person).lifts, (*person).lifts, (*person).restores, (*person).restores, (*person).accepts, (*person).replaces)(p)
}

// beginsQuarantine says of a write of a Baseline that a quarantine begins with it.
func beginsQuarantine(c apiserver.Commit) bool {
	if c.Resource.Resource != "baselines" || c.After == nil {
		return false
	}
	before, _ := c.Before["status"].(map[string]any)
	status, _ := c.After["status"].(map[string]any)
	return before["quarantine"] == nil && status["quarantine"] != nil
}

// judgeQuarantine ends a quarantine as the real assessor does: by the status that is about to be
// written, or because a person asks for that.
func (a *assessor) judgeQuarantine(b *v1alpha1.Baseline) {
	if ended := specguard.JudgeQuarantine(&b.Status, b.Spec.Lift, a.w.rules, time.Now()); ended != nil {
		b.Status.Quarantine, b.Status.EndedQuarantine = nil, ended
	}
}

// answered says that a request to lift is for no quarantine in force.
func answered(b *v1alpha1.Baseline) bool {
	return b.Spec.Lift != nil && !specguard.Lifts(b.Spec.Lift, b.Status.Quarantine)
}
