// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// facts is what is known about somebody else's cluster, and about this machine
// as far as the demo needs it.
type facts struct {
	MissingCommands []string // of this machine
	RegistryProblem string   // why the images cannot be pushed, or ""

	ClusterProblem string   // why the cluster does not answer, or ""; then nothing below is known
	Version        string   // of the API server
	WriterPolicy   bool     // MutatingAdmissionPolicy v1 is served
	Architecture   string   // of the images that are built here
	Architectures  []string // of the cluster's nodes that run pods
	Denied         []right
	Release        *installation   // of Plumbline, if there is one
	Namespaces     map[string]bool // of those that the demo uses and that exist: are they the demo's
	ForeignKinds   []string        // CustomResourceDefinitions of Plumbline that the demo did not install
}

// installation is one of Plumbline.
type installation struct {
	Name, Namespace string // as Helm noted it; "" when it was not Helm
	Demo            bool   // the demo made it
}

// fault is one thing that is in the way, with what to do about it.
type fault struct{ what, remedy string }

// faultsError lists everything that is in the way.
type faultsError []fault

// Error lists every fault with its remedy.
func (f faultsError) Error() string {
	var text strings.Builder
	text.WriteString("the demo cannot run on the current cluster yet; nothing was built or changed:")
	for _, one := range f {
		fmt.Fprintf(&text, "\n  - %s\n    %s", one.what, one.remedy)
	}
	return text.String()
}

// guide is where each remedy is told at length.
const guide = "docs/guides/demo.md"

// check returns nil, or a [faultsError] with everything that is in the way.
func check(f facts) error {
	var faults faultsError
	if len(f.MissingCommands) > 0 {
		faults = append(faults, fault{
			"not installed: " + strings.Join(f.MissingCommands, ", "),
			"the Redis image is made of this machine's Redis; on Debian: sudo apt-get install --no-install-recommends redis-server",
		})
	}
	if f.RegistryProblem != "" {
		faults = append(faults, fault{
			"images cannot be pushed: " + f.RegistryProblem,
			"REGISTRY is HOST[:PORT][/PATH] of a registry that runs; log in with docker login or a credential helper (" + guide + ")",
		})
	}
	if f.ClusterProblem != "" {
		faults = append(faults, fault{
			"the cluster does not answer: " + f.ClusterProblem,
			"choose one with KUBECONFIG or kubectl config use-context; kubectl version must show a server",
		})
	} else {
		faults = append(faults, clusterFaults(f)...)
		faults = append(faults, foreignFaults(f)...)
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

func clusterFaults(f facts) (faults faultsError) {
	if !f.WriterPolicy {
		faults = append(faults, fault{
			fmt.Sprintf("the API server (%s) does not serve MutatingAdmissionPolicy v1", f.Version),
			"the demo needs Kubernetes 1.36 or newer, because it names a writer while nothing of Plumbline runs; Plumbline itself runs on 1.30 (docs/guides/install.md)",
		})
	}
	if len(f.Architectures) == 0 {
		faults = append(faults, fault{"the cluster has no node that runs Linux pods", "add one; kubectl get nodes must show it as schedulable"})
	}
	for _, architecture := range f.Architectures {
		if architecture != f.Architecture {
			faults = append(faults, fault{
				fmt.Sprintf("the cluster has nodes of architecture %s, and the images built here are for %s", architecture, f.Architecture),
				"run the demo from a machine of that architecture, or cordon those nodes meanwhile",
			})
		}
	}
	if len(f.Denied) > 0 {
		faults = append(faults, fault{deniedText(f.Denied), "installing Plumbline takes the rights of a cluster administrator"})
	}
	return faults
}

// shownRights is how many missing rights are named; a tenant lacks them all.
const shownRights = 5

func deniedText(denied []right) string {
	var names []string
	for _, r := range denied[:min(len(denied), shownRights)] {
		names = append(names, r.String())
	}
	text := "you may not " + strings.Join(names, ", ")
	if more := len(denied) - shownRights; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// foreignFaults keeps the demo's hands off what it did not make: it would replace
// an installation, empty a namespace, and tell its user to delete kinds with
// everything of them.
func foreignFaults(f facts) (faults faultsError) {
	if f.Release != nil && !f.Release.Demo {
		what := "Plumbline is installed already, and not by Helm"
		if f.Release.Name != "" {
			what = fmt.Sprintf("Plumbline is installed already, as release %s in namespace %s", f.Release.Name, f.Release.Namespace)
		}
		faults = append(faults, fault{what, "the demo does not touch an installation that is not its own, and there can be one per cluster; use another cluster"})
	} else if len(f.ForeignKinds) > 0 {
		faults = append(faults, fault{
			"kinds of an earlier Plumbline are there: " + strings.Join(f.ForeignKinds, ", "),
			"their objects may be wanted, and the demo's cleaning up would remove them; use another cluster, or remove them: kubectl delete crd -l app.kubernetes.io/part-of=plumbline",
		})
	}
	for _, name := range []string{systemNamespace, shopNamespace, ciNamespace} {
		if ours, exists := f.Namespaces[name]; exists && !ours {
			faults = append(faults, fault{
				"namespace " + name + " exists, and the demo did not make it",
				"the demo removes it at the end; use another cluster, or remove it if nothing in it is wanted: kubectl delete namespace " + name,
			})
		}
	}
	return faults
}

// architectures lists each once, sorted.
func architectures(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
