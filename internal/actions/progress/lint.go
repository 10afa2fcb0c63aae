// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Finding is one fault of a manifest.
type Finding struct {
	// Field is the path of the field.
	Field string `json:"field"`
	// Problem says what is wrong, and Fix what to do.
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
}

// WorkloadFacts is what is known of the workload of a variation.
type WorkloadFacts struct {
	// Exists says whether the workload is in the cluster. Unread says why that is not known; empty if it is known.
	Exists bool
	Unread string
	// Ready are the pods that are ready now.
	Ready int32
	// PodLabels are those of the pod template.
	PodLabels map[string]string
	// Object is the workload; nil if it was not read.
	Object *unstructured.Unstructured
}

// ManifestFacts is what a cluster says about the manifest of a release.
type ManifestFacts struct {
	// Refusal is the answer of the API server to the dry run of the write; empty if the server takes it.
	Refusal string
	// ServiceExists says whether the Service is there, and ServiceSelector which pods the Service selects.
	// ServiceUnread says why that is not known.
	ServiceExists   bool
	ServiceUnread   string
	ServiceSelector map[string]string
	// Service is nil unless it was read.
	Service *corev1.Service
	// Current is the release as it is in the cluster; the zero value if it is not there.
	Current v1alpha1.ABRelease
	// Strategy is the RolloutStrategy that the release names; nil if the strategy does not exist.
	Strategy *v1alpha1.RolloutStrategySpec
	// StrategyUnread says why the strategy could not be read.
	StrategyUnread string
	// Workloads that serve requests, and Groups of workers, by variation.
	Workloads, Groups map[v1alpha1.VariationName]WorkloadFacts
	// Executor is read only for a release that needs the executor.
	Executor Binding
	// Releases are those of the namespace. ReleasesUnread says why they are not known.
	Releases       []v1alpha1.ABRelease
	ReleasesUnread string
}

// LintRelease returns the faults of the manifest of a release. unread names what could not be checked.
func LintRelease(r *v1alpha1.ABRelease, f *ManifestFacts) (findings []Finding, unread []string) {
	l := &linter{release: r, facts: f}
	if f.Refusal != "" {
		l.find("", f.Refusal, "correct the manifest")
	}
	if r.Spec.HasRequests() {
		l.service()
	}
	for i := range r.Spec.Variations {
		l.variation(i)
	}
	l.control()
	l.canary()
	l.executor()
	l.strategy()
	return l.findings, l.unread
}

type linter struct {
	release  *v1alpha1.ABRelease
	facts    *ManifestFacts
	findings []Finding
	unread   []string
}

func (l *linter) find(field, problem, fix string) {
	l.findings = append(l.findings, Finding{Field: field, Problem: problem, Fix: fix})
}

func (l *linter) service() {
	switch name := l.release.Spec.ServiceName; {
	case l.facts.ServiceUnread != "":
		l.unread = append(l.unread, "Service "+name+": "+l.facts.ServiceUnread)
	case !l.facts.ServiceExists:
		l.find("spec.serviceName", "Service "+name+" does not exist", "create the Service, or name another one")
	case l.facts.Service != nil:
		for _, p := range refusals(l.facts.Service) {
			l.find("spec.serviceName", fmt.Sprintf("proxies cannot manage Service %s: %s", name, p.Reason), p.Message)
		}
	}
}

// refusals are why proxies leave a Service alone that a release names.
func refusals(service *corev1.Service) []ir.Problem {
	named := service.DeepCopy()
	if named.Labels == nil {
		named.Labels = map[string]string{}
	}
	named.Labels[ir.Managed] = "true" // a release does as the label does
	mesh := ir.Build(ir.Inputs{Services: []*corev1.Service{named}})
	return slices.DeleteFunc(mesh.Problems, func(p ir.Problem) bool { return !p.Refused })
}

// Hints returns traits of the cluster that are no fault of the manifest and that may surprise.
func Hints(r *v1alpha1.ABRelease, f *ManifestFacts) []Finding {
	if f.Service == nil || f.Service.Labels[ir.Managed] == "true" {
		return nil
	}
	return []Finding{{
		Field:   "spec.serviceName",
		Problem: fmt.Sprintf("Service %s has no label %s, so proxies manage the Service only for the release, and leave it alone when the release is deleted", r.Spec.ServiceName, ir.Managed),
		Fix:     fmt.Sprintf("kubectl label service %s -n %s %s=true", r.Spec.ServiceName, f.Service.Namespace, ir.Managed),
	}}
}

func (l *linter) variation(i int) {
	v := &l.release.Spec.Variations[i]
	if v.Clone != nil {
		l.clone(l.release, v)
	}
	field := fmt.Sprintf("spec.variations[%d]", i)
	if v.Workload != nil {
		name, w := fmt.Sprintf("%s %s", v.Workload.Kind, v.Workload.Name), l.facts.Workloads[v.Name]
		if l.exists(field+".workload", name, &w) && v.Name != l.release.Spec.Stable && selects(l.facts.ServiceSelector, w.PodLabels) {
			l.find(field+".workload", fmt.Sprintf("Service %s selects the pods of %s, so clients without a proxy reach the canary", l.release.Spec.ServiceName, name),
				"give the Service a selector that selects the pods of the stable variation alone")
		}
	}
	if v.Group != nil {
		name, w := fmt.Sprintf("%s %s", v.Group.Kind, v.Group.Name), l.facts.Groups[v.Name]
		if l.exists(field+".group", name, &w) && selects(l.facts.ServiceSelector, w.PodLabels) {
			l.find(field+".group", fmt.Sprintf("Service %s selects the pods of %s, so workers get requests", l.release.Spec.ServiceName, name),
				"give the Service a selector that selects no pods of a group")
		}
	}
}

// exists tells whether a workload is in the cluster; it notes why not otherwise.
func (l *linter) exists(field, name string, w *WorkloadFacts) bool {
	switch {
	case w.Unread != "":
		l.unread = append(l.unread, name+": "+w.Unread)
		return false
	case !w.Exists:
		l.find(field, name+" does not exist", "create the workload, or name another one")
		return false
	}
	return true
}

// selects tells whether a selector, if it selects anything, selects pods with the labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, has := labels[key]; !has || got != value {
			return false
		}
	}
	return len(selector) > 0
}

// canary finds another release that rolls out to the canary, for which the discovery server would begin no run.
func (l *linter) canary() {
	if l.facts.ReleasesUnread != "" {
		l.unread = append(l.unread, "ABReleases of namespace "+l.release.Namespace+": "+l.facts.ReleasesUnread)
		return
	}
	stored := l.release.DeepCopy()
	stored.UID, stored.CreationTimestamp = l.facts.Current.UID, l.facts.Current.CreationTimestamp
	if err := rollout.FindSharer(stored, l.facts.Releases); err != nil {
		l.find("spec.variations", "CanaryShared: "+err.Error(), "name another canary, or delete the other release")
	}
}

func (l *linter) strategy() {
	in := l.release.Spec.Rollout
	if in == nil {
		return
	}
	if in.StrategyName != "" && l.facts.StrategyUnread != "" {
		l.unread = append(l.unread, "RolloutStrategy "+in.StrategyName+": "+l.facts.StrategyUnread)
		return
	}
	plan, err := rollout.PlanOf(l.release, l.facts.Strategy, anywhere(l.release))
	if err != nil {
		l.find("spec.rollout", err.Error(), "correct the strategy, or name another one")
		return
	}
	l.findings = append(l.findings, lintStages("spec.rollout.strategy", plan.Strategy)...)
	l.capacity(plan.Strategy)
}

// capacity compares the ready pods of the canary with those that the first stage with requests needs.
func (l *linter) capacity(s rollout.Strategy) {
	first := s.Stages[0].Weight
	if first == 0 && len(s.Stages) > 1 {
		first = s.Stages[1].Weight
	}
	stable, known := l.facts.Workloads[l.release.Spec.Stable]
	for i := range l.release.Spec.Variations {
		name := l.release.Spec.Variations[i].Name
		w, is := l.facts.Workloads[name]
		if name == l.release.Spec.Stable || !known || !is || !w.Exists || !stable.Exists {
			continue
		}
		if wants := requiredPods(float64(first)/100, stable.Ready); w.Ready < wants {
			l.find(fmt.Sprintf("spec.variations[%d].workload", i), fmt.Sprintf("%d pods of %s are ready, and the first stage needs %d", w.Ready, name, wants), "scale the workload before the run")
		}
	}
}

// LintStrategy returns the faults of a strategy, with fields below the prefix.
func LintStrategy(in *v1alpha1.RolloutStrategySpec) []Finding {
	r := &v1alpha1.ABRelease{}
	r.Spec.Rollout = &v1alpha1.Rollout{Strategy: in}
	plan, err := rollout.PlanOf(r, nil, anywhere(r))
	if err != nil {
		return []Finding{{Field: "spec", Problem: err.Error(), Fix: "correct the strategy"}}
	}
	return lintStages("spec", plan.Strategy)
}

func lintStages(prefix string, s rollout.Strategy) []Finding {
	last := len(s.Stages) - 1
	if s.Stages[last].Weight == traffic.Total {
		return nil
	}
	return []Finding{{
		Field:   fmt.Sprintf("%s.stages[%d].trafficPercentage", prefix, last),
		Problem: "the last stage has less than 100 %, so the promotion sends requests to the canary that no stage has measured",
		Fix:     "end with a stage of 100",
	}}
}

// LeastDuration returns the least time that a run takes: the sum of the durations of its stages. Pods,
// acknowledgments, approvals and missing data make a run longer.
func LeastDuration(in *v1alpha1.RolloutStrategySpec) time.Duration {
	var sum time.Duration
	for i := range in.Stages {
		if d := in.Stages[i].Duration; d != nil {
			sum += d.Duration
		}
	}
	return sum
}
