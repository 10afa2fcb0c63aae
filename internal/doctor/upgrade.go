// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"strings"
)

// reinstallFix is for what differs from the chart. Examine writes the command of this installation in place
// of upgradeCommand.
const (
	reinstallFix   = "restore it to the content of the chart:\n" + upgradeCommand
	upgradeCommand = "helm upgrade RELEASE CHART"
)

// What Helm writes on the objects of a release, and the chart on its own.
const (
	helmReleaseName      = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
	chartLabel           = "helm.sh/chart"
)

// upgrade returns the command that applies the chart again, for the tool that installed it. A tool of GitOps
// undoes what another one applies, so it is asked to. Helm's --reuse-values would leave out the defaults of
// values that are new in the chart.
func (s *Snapshot) upgrade() string {
	if namespace, name, ok := s.FluxOwner(FluxKinds()[0]); ok {
		return fmt.Sprintf("flux reconcile helmrelease %s -n %s --force", name, namespace)
	}
	if namespace, name, ok := s.FluxOwner(FluxKinds()[1]); ok {
		return fmt.Sprintf("flux reconcile kustomization %s -n %s --with-source", name, namespace)
	}
	// The tracking id is APPLICATION:GROUP/KIND:NAMESPACE/NAME.
	tracking, _, _ := strings.Cut(s.findMark(argoCDTracking), ":")
	if application := cmp.Or(tracking, s.findMark(argoCDInstance)); application != "" {
		return "argocd app sync " + application
	}
	release, namespace := cmp.Or(s.findMark(helmReleaseName), "plumbline"), cmp.Or(s.findMark(helmReleaseNamespace), s.Namespace, usualNamespace)
	command := fmt.Sprintf("helm upgrade %s CHART -n %s --reset-then-reuse-values --force-conflicts", release, namespace)
	if chart := s.findMark(chartLabel); chart != "" {
		return command + "  # CHART is the address or directory of " + chart
	}
	return command + "  # CHART is the address or directory that it was installed from"
}

// findMark returns an annotation or a label of our webhook configurations, or of a Deployment where those are
// gone.
func (s *Snapshot) findMark(key string) string {
	for _, w := range s.ours() {
		if value := cmp.Or(w.Annotations[key], w.Labels[key]); value != "" {
			return value
		}
	}
	for i := range s.Workloads.Value {
		w := &s.Workloads.Value[i]
		if value := cmp.Or(w.Annotations[key], w.Labels[key]); value != "" {
			return value
		}
	}
	return ""
}
