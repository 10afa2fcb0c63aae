// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// discoveryServer is the user of the discovery server, of the controller of Deployments and of the garbage
// collector in worlds with standbys.
const discoveryServer = "system:serviceaccount:" + namespaceOfPlumbline + ":plumbline-xds"

// standbyAims are worlds in which a standby serves while a target is repaired.
func standbyAims() []Aim {
	return []Aim{
		{"standbys", []string{"effect beside a standby", "standby that is made", "standby that is gone at the end"}, (*scenario).standBy},
	}
}

// standBy has a standby answer the requests of each target while the target is repaired.
func (c *scenario) standBy(rng *rand.Rand) {
	if c.action == v1alpha1.ActionQuarantine {
		c.action = v1alpha1.ActionReconcile
	}
	c.kind, c.gone, c.mesh, c.releases, c.standbys = &deployments, false, true, false, true
	c.proxiesLack = rng.IntN(12) == 0
	c.messages += 150
	if rng.IntN(2) == 0 {
		c.batches = [][]int32{{0}}
	}
	for _, d := range []disturbance{
		eager("standby-eraser", "root", (*person).erasesStandby), eager("kubelet-of-standbys", "kubelet", (*person).starvesStandby),
		eager("canceler-beside-a-standby", "alice", (*person).controls),
	} {
		if rng.IntN(3) == 0 {
			c.hire(d)
		}
	}
}

// frontOf is the name of the Service of a target.
func frontOf(target string) string { return front + "-of-" + target }

// addFronts stores a managed Service for each target, with one pod.
func (w *World) addFronts() {
	http, yes := "http", true
	for i, t := range w.targets {
		selector := map[string]string{front: t.name}
		w.store("", "v1", "services", namespace, &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: frontOf(t.name), Labels: map[string]string{ir.Managed: "true"}},
			Spec: corev1.ServiceSpec{
				ClusterIPs: []string{fmt.Sprintf("10.0.0.%d", i+1)}, Selector: selector, Ports: []corev1.ServicePort{{Name: http, Port: 80, AppProtocol: &http}},
			},
		})
		pod := podOf(i, backend{t.name, true})
		pod.Labels[front] = t.name
		w.store("", "v1", "pods", namespace, pod)
		w.store("discovery.k8s.io", "v1", "endpointslices", namespace, &discoveryv1.EndpointSlice{
			TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: frontOf(t.name), Labels: map[string]string{discoveryv1.LabelServiceName: frontOf(t.name)}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: new(int32(8080))}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{addressOf(i)}, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod.Name},
			}},
		})
	}
}

// noteStandby is told of every stored write.
func (w *World) noteStandby(c apiserver.Commit) {
	if labelOf(c.After, v1alpha1.LabelStandby) != nil {
		w.standbyNames.add(c.Name)
	}
}

// standbyLeft says that a standby, or its ABRelease, is there.
func (w *World) standbyLeft() bool {
	for _, name := range w.standbyNames.names() {
		if w.abRelease(name) != nil || w.deployment(name) != nil {
			return true
		}
	}
	return false
}

func (w *World) abRelease(name string) apiserver.Object {
	return w.Server.Look(group, "abreleases", namespace, name)
}

func (w *World) deployment(name string) apiserver.Object {
	return w.Server.Look(deployments.gvk.Group, deployments.resource, namespace, name)
}

// serveStandbys does for standbys what controllers of a cluster do: the Deployments become ready, the
// discovery server decides where requests go, by the rules of the real one, the proxies acknowledge that, and what
// belongs to an object that is gone is removed.
func (w *World) serveStandbys(l *schedule.Life) {
	p := w.person(l, discoveryServer)
	changed := w.watch(func(c apiserver.Commit) bool {
		return c.Resource.Resource == "abreleases" || c.Resource.Resource == deployments.resource || c.Resource.Resource == "remediationplans" && c.After == nil
	})
	for {
		patience := time.Hour
		for _, name := range w.standbyNames.names() {
			if !p.carriesStandby(name) {
				patience = 5 * time.Second // a share that was clamped comes back by time alone, too
			}
		}
		l.Await(changed, patience)
	}
}

// carriesStandby does the next thing about one standby, and says that nothing of it is left.
func (p *person) carriesStandby(name string) (gone bool) {
	split, made := p.w.abRelease(name), p.w.deployment(name)
	late := func(atMost time.Duration) { p.Sleep(time.Duration(p.Rand().Int64N(int64(atMost)))) }
	switch {
	case split == nil && made == nil:
		return true
	case split != nil && p.w.orphaned(split, p.w.Server.Look(group, "remediationplans", namespace, ownerOf(split))):
		late(time.Second)
		p.ask(http.MethodDelete, releasesPath+name, plain, nil)
	case made != nil && p.w.orphaned(made, split):
		late(time.Second)
		p.ask(http.MethodDelete, deployments.path+"/"+name, plain, nil)
	case made != nil && !observed(made):
		late(8 * time.Second)
		if made = p.ask(http.MethodGet, deployments.path+"/"+name, "", nil); made != nil {
			ready(made)
			p.ask(http.MethodPut, deployments.path+"/"+name+"/status", plain, made)
		}
	}
	if split = p.w.abRelease(name); split != nil {
		if next := p.w.decideSplit(split); !bytes.Equal(encode(next["status"]), encode(split["status"])) {
			late(2 * time.Second)
			p.ask(http.MethodPut, releasesPath+name+"/status", plain, next)
		}
	}
	return false
}

// ownerOf is the name of the controller of an object, or of its one owner.
func ownerOf(o apiserver.Object) string {
	owner, _ := firstOwner(o)["name"].(string)
	return owner
}

func firstOwner(o apiserver.Object) map[string]any {
	owners, _ := metadata(o)["ownerReferences"].([]any)
	if len(owners) == 0 {
		return nil
	}
	first, _ := owners[0].(map[string]any)
	return first
}

// orphaned says that the owner of an object is gone.
func (w *World) orphaned(o, owner apiserver.Object) bool {
	return owner == nil || metadata(owner)["uid"] != firstOwner(o)["uid"]
}

// decideSplit is an ABRelease with the status that the discovery server gives it, once all proxies have
// acknowledged that.
func (w *World) decideSplit(o apiserver.Object) apiserver.Object {
	r := typed[v1alpha1.ABRelease](o)
	terms, err := release.TermsOf(r)
	if err != nil {
		return o
	}
	pods := map[string]int{}
	for i := range r.Spec.Variations {
		v := &r.Spec.Variations[i]
		pods[string(v.Name)] = w.readyReplicas(v.Workload.Name)
	}
	decided := release.Decide(release.Facts{Terms: &terms, Before: release.StateOf(r), Ready: pods, Now: time.Now()}).After
	if decided == nil {
		return o
	}
	decided.Write(&r.Status)
	knowledge := v1alpha1.AcknowledgedProven
	if w.proxiesLack {
		knowledge = v1alpha1.AcknowledgedByNoProxy
	}
	r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Count: "2/2", Sequence: r.Status.Effective.Sequence, Knowledge: knowledge}
	return object(r)
}

func (w *World) readyReplicas(name string) int {
	status, _ := w.deployment(name)["status"].(map[string]any)
	n, _ := status["readyReplicas"].(int64)
	return int(n)
}

// someStandby is the name of a standby that was ever made; empty while there is none.
func (p *person) someStandby() string {
	names := p.w.standbyNames.names()
	if len(names) == 0 {
		return ""
	}
	return names[p.Rand().IntN(len(names))]
}

// erasesStandby removes the ABRelease of a standby, as a person does who ends a wait.
func (p *person) erasesStandby() {
	if name := p.someStandby(); name != "" && p.ask(http.MethodDelete, releasesPath+name, plain, nil) != nil {
		p.w.count("standby that a person removes")
	}
}

// starvesStandby has a standby lose its pods for a while.
func (p *person) starvesStandby() {
	name := p.someStandby()
	if name == "" || p.w.deployment(name) == nil {
		return
	}
	path := deployments.path + "/" + name + "/status"
	p.ask(http.MethodPatch, path, mergePatch, apiserver.Object{"status": map[string]any{"readyReplicas": int64(0), "availableReplicas": int64(0)}})
	p.w.count("standby that loses its pods")
	p.Sleep(time.Duration(p.Rand().Int64N(int64(time.Minute))))
	if o := p.ask(http.MethodGet, deployments.path+"/"+name, "", nil); o != nil {
		ready(o)
		p.ask(http.MethodPut, path, plain, o)
	}
}
