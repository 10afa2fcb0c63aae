// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// Groups of the tools, and the marks that they put on what they apply.
const (
	argoCDGroup    = "argoproj.io"
	argoCDTracking = gitops.ArgoCDTracking
	argoCDInstance = gitops.ArgoCDInstance
	fluxHelm       = gitops.FluxHelm
	fluxKustomize  = gitops.FluxKustomize

	certManagerMark = "cert-manager.io/inject-ca-from"
	runTime         = "the fields that are written at run time"
)

// GitOps is the settings of GitOps tools. Its reads come after those of the webhooks and Deployments, whose
// marks name the objects to read: see [Snapshot.FluxOwner].
type GitOps struct {
	// Applications are all of the cluster.
	Applications Read[[]gitops.Application]
	// Settings are the data of the ConfigMaps argocd-cm, by namespace.
	Settings Read[map[string]map[string]string]
	// HelmRelease and Kustomization are those that our objects name as theirs.
	HelmRelease, Kustomization Read[gitops.FluxObject]
	// Metadata of the Secret and the leases, by [gitops.Object.ID].
	Metadata map[string]Read[gitops.Metadata]
}

// FluxKinds are the kinds of Flux that can install Plumbline.
func FluxKinds() []gitops.FluxKind {
	return []gitops.FluxKind{gitops.HelmRelease, gitops.Kustomization}
}

// FluxResource names the group and resource of a kind.
func FluxResource(kind gitops.FluxKind) (group, resource string) {
	if kind == gitops.HelmRelease {
		return fluxHelm, "helmreleases"
	}
	return fluxKustomize, "kustomizations"
}

// FluxOwner returns the object of Flux that the labels of our objects name; ok is false without such labels.
func (s *Snapshot) FluxOwner(kind gitops.FluxKind) (namespace, name string, ok bool) {
	group, _ := FluxResource(kind)
	name = s.findMark(group + "/name")
	return s.findMark(group + "/namespace"), name, name != ""
}

// ServesArgoCD tells whether Applications are kept in this cluster.
func (s *Snapshot) ServesArgoCD() bool { return s.serves(argoCDGroup, "applications") }

// GitOpsTool tells whether a GitOps tool is in the cluster or has left its mark.
func (s *Snapshot) GitOpsTool() bool {
	for _, kind := range FluxKinds() {
		if _, _, ok := s.FluxOwner(kind); ok || s.serves(FluxResource(kind)) {
			return true
		}
	}
	return s.ServesArgoCD() || s.findMark(argoCDTracking) != "" || s.findMark(argoCDInstance) != ""
}

// FilledObjects are the objects of the chart with fields that are written at run
// time. Where cert-manager issues the certificates the chart has neither the
// Secret nor the webhook's lease. Without an executor it has no lease of one.
func (s *Snapshot) FilledObjects() []gitops.Object {
	mutating := gitops.Configuration("MutatingWebhookConfiguration", ConfigurationName, hashWebhook)
	validating := gitops.Configuration("ValidatingWebhookConfiguration", ConfigurationName, verdictWebhook)
	mutating.Metadata, validating.Metadata = &gitops.Metadata{}, &gitops.Metadata{}
	certManager := false
	for _, w := range s.ours() {
		object := &validating
		if w.Mutating {
			object = &mutating
		}
		object.Metadata = &gitops.Metadata{Labels: w.Labels, Annotations: w.Annotations}
		certManager = certManager || w.Annotations[certManagerMark] != ""
	}
	out := []gitops.Object{mutating, validating}
	if !certManager {
		out = append(out, gitops.Secret(s.Namespace, SecretName), gitops.Lease(s.Namespace, WebhookName))
	}
	out = append(out, gitops.Lease(s.Namespace, AssessorName))
	if s.executor() == ReadValue {
		out = append(out, gitops.Lease(s.Namespace, ExecutorName))
	}
	for i := range out[ourWebhooksCount:] {
		o := &out[ourWebhooksCount+i]
		if read := s.GitOps.Metadata[o.ID()]; read.known() {
			o.Metadata = &read.Value
		} else {
			o.Unread = read.why()
		}
	}
	return out
}

// checkGitOps asks of each GitOps tool that installs Plumbline whether it leaves
// alone the fields that are written at run time.
func checkGitOps(s *Snapshot) []Finding {
	if !s.Resources.known() {
		return []Finding{s.Resources.unknown("whether a GitOps tool is there")}
	}
	if !s.Webhooks.known() { // they bear the marks of a tool, of one in another cluster too
		return []Finding{s.Webhooks.unknown("whether a GitOps tool installs Plumbline")}
	}
	return slices.Concat(s.checkArgoCD(), s.checkFlux())
}
