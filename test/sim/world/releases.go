// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

const releasesPath = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/abreleases/"

// releaseOf is the name of the release of a target.
func releaseOf(target string) string { return "release-of-" + target }

// addReleases stores a release of each target, of which no run is under way.
func (w *World) addReleases() {
	for _, t := range w.targets {
		w.storeOwn("abreleases", namespace, &v1alpha1.ABRelease{
			TypeMeta: typeMeta("ABRelease"), ObjectMeta: metav1.ObjectMeta{Name: releaseOf(t.name), Namespace: namespace},
			Spec: v1alpha1.ABReleaseSpec{Stable: "stable", Variations: []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: t.name}},
				{Name: "canary", Clone: &v1alpha1.VariationClone{Image: imageNewer}},
			}},
		})
	}
}

// runOf is a patch of the status of a release with a run in a state.
func runOf(state v1alpha1.RunState) apiserver.Object {
	return apiserver.Object{"status": map[string]any{"rollout": map[string]any{"run": map[string]any{"number": int64(1), "state": string(state)}}}}
}

// releases has a run of a target be under way for a while.
func (p *person) releases() {
	path := releasesPath + releaseOf(p.some().name) + "/status"
	p.w.count("release under way")
	p.forAWhile(5*time.Minute, func() {
		p.ask(http.MethodPatch, path, mergePatch, runOf("Running"))
	}, func() { p.ask(http.MethodPatch, path, mergePatch, runOf("Completed")) })
}

// underWay says of a release that its run is.
func underWay(r *v1alpha1.ABRelease) bool {
	return r.Status.Rollout != nil && r.Status.Rollout.Run != nil && r.Status.Rollout.Run.State == "Running"
}

// completeRuns ends the runs that are under way, where the answer of the last request was lost.
func (w *World) completeRuns() {
	for _, t := range w.targets {
		o := w.Server.Look(group, "abreleases", namespace, releaseOf(t.name))
		if o != nil && underWay(typedOf[v1alpha1.ABRelease](w, o)) {
			w.direct(releasesPath+releaseOf(t.name)+"/status", runOf("Completed"))
		}
	}
}
