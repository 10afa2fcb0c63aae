// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fine is a cluster that nothing is wrong with.
func fine() facts {
	return facts{
		Version: "v1.36.3", WriterPolicy: true,
		Architecture: "amd64", Architectures: []string{"amd64"},
		Namespaces: map[string]bool{},
	}
}

func TestCheck_SaysWhatIsInTheWayAndWhatToDo(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   []string // of each fault, in order; none: the demo may run
	}{
		"nothing is in the way":           {func(*facts) {}, nil},
		"the demo's own release is there": {func(f *facts) { f.Release = &installation{"plumbline", systemNamespace, true} }, nil},
		"the demo's own namespaces are there": {func(f *facts) {
			f.Namespaces = map[string]bool{systemNamespace: true, shopNamespace: true, ciNamespace: true}
		}, nil},
		"Redis is not installed here": {
			func(f *facts) { f.MissingCommands = []string{"redis-server"} },
			[]string{"not installed: redis-server\n    ", "apt-get install"},
		},
		"the registry refuses": {
			func(f *facts) { f.RegistryProblem = "asking to push x: connection refused" },
			[]string{"images cannot be pushed: asking to push x: connection refused\n    ", "docker login"},
		},
		"the cluster does not answer": {
			func(f *facts) { f.ClusterProblem = "connection refused" },
			[]string{"the cluster does not answer: connection refused\n    ", "kubectl config use-context"},
		},
		"the cluster is too old": {
			func(f *facts) { f.Version, f.WriterPolicy = "v1.35.1", false },
			[]string{"the API server (v1.35.1) does not serve MutatingAdmissionPolicy v1\n    ", "Kubernetes 1.36 or newer", "1.30 (docs/guides/install.md)"},
		},
		"nothing can run there": {
			func(f *facts) { f.Architectures = nil },
			[]string{"no node that runs Linux pods\n    ", "kubectl get nodes"},
		},
		"some nodes have another processor": {
			func(f *facts) { f.Architectures = []string{"amd64", "arm64"} },
			[]string{"nodes of architecture arm64, and the images built here are for amd64\n    ", "cordon"},
		},
		"a right is lacking": {
			func(f *facts) {
				f.Denied = []right{{verb: "create", group: "apps", resource: "deployments", namespace: systemNamespace}, {verb: "impersonate", resource: "users"}}
			},
			[]string{"you may not create deployments.apps in plumbline-system, impersonate users\n    ", "cluster administrator"},
		},
		"all rights are lacking, of which a few are named": {
			func(f *facts) { f.Denied = neededRights()[:7] },
			[]string{"you may not ", " and 2 more\n    "},
		},
		"somebody installed Plumbline with Helm": {
			func(f *facts) { f.Release = &installation{"guard", "security", false} },
			[]string{"Plumbline is installed already, as release guard in namespace security\n    ", "use another cluster"},
		},
		"somebody installed Plumbline by other means": {
			func(f *facts) { f.Release = &installation{} },
			[]string{"installed already, and not by Helm\n    ", "use another cluster"},
		},
		"an uninstalled Plumbline has left guards": {
			func(f *facts) { f.ForeignKinds = []string{"specguards.plumbline.dev"} },
			[]string{"kinds of an earlier Plumbline are there: specguards.plumbline.dev\n    ", "kubectl delete crd"},
		},
		"a namespace of that name is somebody's": {
			func(f *facts) { f.Namespaces[shopNamespace] = false },
			[]string{"namespace plumbline-demo-shop exists, and the demo did not make it\n    ", "kubectl delete namespace plumbline-demo-shop"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := fine()
			tc.change(&f)
			err := check(f)
			if len(tc.want) == 0 {
				if err != nil {
					t.Errorf("check = %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("check found nothing")
			}
			if faults := strings.Count(err.Error(), "\n  - "); faults != 1 {
				t.Errorf("%d faults, want one:\n%v", faults, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestCheck_TellsEverythingAtOnce(t *testing.T) {
	f := fine()
	f.MissingCommands, f.RegistryProblem, f.WriterPolicy = []string{"redis-server"}, "refused", false
	f.Release, f.Namespaces[ciNamespace] = &installation{}, false
	if err := check(f); err == nil || strings.Count(err.Error(), "\n  - ") != 5 {
		t.Errorf("want five faults, got %v", err)
	}
}

// What is not known of a cluster that does not answer must not be told as a fault.
func TestCheck_OfAClusterThatDoesNotAnswerSaysNothingElseOfIt(t *testing.T) {
	err := check(facts{ClusterProblem: "no route to host"})
	if err == nil || strings.Count(err.Error(), "\n  - ") != 1 {
		t.Errorf("want one fault, got %v", err)
	}
}

func TestNeededRights_AreNamedOnceEach(t *testing.T) {
	var names []string
	for _, r := range neededRights() {
		names = append(names, r.String())
	}
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Error("a right is asked for twice")
	}
	if diff := cmp.Diff("patch deployments.apps/scale in plumbline-system", right{"patch", "apps", "deployments", "scale", systemNamespace}.String()); diff != "" {
		t.Errorf("name (-want +got):\n%s", diff)
	}
}
