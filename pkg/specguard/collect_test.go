// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// The policy of Deny and the match conditions of the webhook have the list from the values of the chart.
func TestBuiltInControllersAreThoseOfTheChart(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "charts", "plumbline", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Policies struct {
			Deny struct {
				ControllerUsers []string `json:"controllerUsers"`
			} `json:"deny"`
		} `json:"policies"`
	}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	want := []string{"system:kube-controller-manager"} // the templates add it
	for _, user := range values.Policies.Deny.ControllerUsers {
		if user != controllerPrefix+"ttl-after-finished-controller" { // it makes nothing
			want = append(want, user)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(builtInControllers))); diff != "" {
		t.Error(diff)
	}
	for user := range builtInControllers {
		if !IsBuiltInController(user) || IsBuiltInController(user+"s") {
			t.Errorf("%s is one, and another name is none", user)
		}
	}
}

func TestWhoRemovesObjectsOnBehalfOfNoUser(t *testing.T) {
	pod, job, deployment := canon.GVK{Version: "v1", Kind: "Pod"}, canon.GVK{Group: "batch", Version: "v1", Kind: "Job"}, canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	tests := map[string]struct {
		kind canon.GVK
		user string
		want bool
	}{
		"the garbage collector and any kind":           {deployment, userGarbageCollector, true},
		"the namespace controller and any kind":        {deployment, userNamespaceController, true},
		"the collector of pods and a pod":              {pod, controllerPrefix + "pod-garbage-collector", true},
		"the collector of pods and a Job":              {job, controllerPrefix + "pod-garbage-collector", false},
		"a taint and a pod":                            {pod, controllerPrefix + "taint-eviction-controller", true},
		"preemption and a pod":                         {pod, "system:kube-scheduler", true},
		"preemption and a Deployment":                  {deployment, "system:kube-scheduler", false},
		"the end of a Job's time and a Job":            {job, controllerPrefix + "ttl-after-finished-controller", true},
		"the end of a Job's time and a pod":            {pod, controllerPrefix + "ttl-after-finished-controller", false},
		"another account of kube-system":               {pod, controllerPrefix + "cronjob-controller", false},
		"a user and a pod":                             {pod, "alice", false},
		"a custom kind that calls itself Pod":          {canon.GVK{Group: "x.example", Version: "v1", Kind: "Pod"}, controllerPrefix + "pod-garbage-collector", false},
		"an account of the same name of other parents": {pod, "system:serviceaccount:shop:pod-garbage-collector", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&step{gvk: tc.kind}).collects(tc.user); got != tc.want {
				t.Errorf("collects: %t", got)
			}
		})
	}
}

// A kubelet removes a pod that a user deleted, when its containers have ended. Whose deletion it was, the record of the
// user tells.
func TestTheKubeletThatEndsAPodIsNotItsDeleter(t *testing.T) {
	node := write{user: "system:node:n1", groups: []string{"system:nodes", "system:authenticated"}}
	for name, tc := range map[string]struct {
		writes []write
		want   string
	}{
		"a trusted writer, then the kubelet":                     {[]write{{user: user("ci")}, node}, "Retired"},
		"a stranger, then the kubelet":                           {[]write{{user: "alice"}, node}, "Missing: alice"},
		"the kubelet alone":                                      {[]write{node}, "Missing: "},
		"a stranger that calls itself a node, without the group": {[]write{{user: user("ci")}, {user: "system:node:n1"}}, "Missing: system:node:n1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gvk = canon.GVK{Version: "v1", Kind: "Pod"}
			w.state = NewState("pods.core.web", v1alpha1.BaselineTarget{APIVersion: "v1", Kind: "Pod", Name: "web"})
			spec := testGuardSpec()
			spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Pod"}}
			w.guard("pods", spec, w.now.Add(-time.Hour))
			w.create(write{user: user("ci")}, podTemplate)
			w.observe(false, false)
			for _, wr := range tc.writes {
				w.remove(wr)
			}
			w.observe(false, false)
			w.now = w.now.Add(time.Minute)
			w.observe(false, false)
			got := string(w.state.Drift)
			if len(w.state.Findings) > 0 {
				got += ": " + w.state.Findings[0].Actor.User
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}
