// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxSkew is how far apart clocks may be before ages and certificates suffer.
const maxSkew = 30 * time.Second

const installFix = "helm install plumbline charts/plumbline --namespace plumbline-system --create-namespace --wait\n" +
	"or name the namespace of the installation with --namespace"

// checkInstalled does not believe a namespace that the caller names.
func checkInstalled(s *Snapshot) []Finding {
	switch {
	case s.Namespace == "" && (!s.Webhooks.known() || !s.Workloads.known()):
		if !s.Webhooks.known() {
			return []Finding{s.Webhooks.unknown("whether Plumbline is installed")}
		}
		return []Finding{s.Workloads.unknown("whether Plumbline is installed")}
	case s.Namespace == "":
		return []Finding{{Severity: Critical, Message: "no installation of Plumbline was found", Fix: installFix}}
	case !s.Workloads.known():
		return []Finding{s.Workloads.unknown("whether Plumbline is installed in namespace " + s.Namespace)}
	case len(s.Workloads.Value) == 0:
		return []Finding{{Severity: Critical, Object: "Namespace/" + s.Namespace, Message: "no installation of Plumbline was found here", Fix: installFix}}
	default:
		return []Finding{{Severity: OK, Object: "Namespace/" + s.Namespace, Message: "Plumbline is installed in namespace " + s.Namespace}}
	}
}

// ownKinds are the resources that the chart installs.
var ownKinds = []string{
	"abreleases", "baselines", "baselinerevisions", "clusterspecguards", "effectivenessassessments", "environments", "guarddefaults", "releaseworks",
	"remediationledgers", "remediationplans", "remediationpolicies", "remediationrequests", "rolloutstrategies", "specguardexceptions", "specguards", "trafficrouters",
}

// checkKinds asks discovery, which everybody may read, and which tells a kind
// that exists and is not served from one that works.
func checkKinds(s *Snapshot) []Finding {
	if !s.Resources.known() {
		return []Finding{s.Resources.unknown("whether Plumbline's kinds are served")}
	}
	var out []Finding
	for _, resource := range ownKinds {
		if s.serves(v1alpha1.GroupVersion.Group, resource) {
			continue
		}
		f := Finding{Severity: Critical, Object: "CustomResourceDefinition/" + resource + "." + v1alpha1.GroupVersion.Group, Fix: reinstallFix,
			Message: "the kind is not served: the parts that need it stand still"}
		if resource == "clusterspecguards" {
			f.Message = "the kind is not served: its guards are gone, and the policy that denies by them is silently off"
		}
		out = append(out, f)
	}
	return out
}

func checkWorkloads(s *Snapshot) []Finding {
	switch {
	case s.Namespace == "":
		return []Finding{{Severity: Unknown, Message: "cannot tell whether replicas are ready: no installation was found"}}
	case !s.Workloads.known():
		return []Finding{s.Workloads.unknown("whether all replicas are ready")}
	}
	var out []Finding
	for _, name := range []string{WebhookName, AssessorName} {
		i := slices.IndexFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == name })
		if i < 0 {
			out = append(out, Finding{Severity: Critical, Object: "Deployment/" + s.Namespace + "/" + name, Message: "it does not exist", Fix: reinstallFix})
		}
	}
	for _, w := range s.Workloads.Value {
		if w.Name == ExecutorName {
			continue // executor.workload knows how much depends on it
		}
		if f, found := readiness(s, w); found {
			out = append(out, f)
		}
	}
	return append(out, serviceFindings(s)...)
}

func readiness(s *Snapshot, w Workload) (Finding, bool) {
	f := Finding{Severity: Warning, Object: "Deployment/" + s.Namespace + "/" + w.Name,
		Fix: "kubectl describe deployment " + w.Name + " -n " + s.Namespace + "\nkubectl logs deployment/" + w.Name + " -n " + s.Namespace}
	switch {
	case w.Ready == 0 && w.Name == RedisName:
		f.Message = "no replica is ready: drift is found, and explained less well"
	case w.Ready == 0:
		f.Severity, f.Message = Critical, fmt.Sprintf("no replica is ready (%d wanted)", w.Desired)
		if w.Desired == 0 {
			f.Message = "it is scaled to 0"
		}
	case w.Ready < w.Desired:
		f.Message = fmt.Sprintf("%d of %d replicas are ready", w.Ready, w.Desired)
	default:
		return Finding{}, false
	}
	return f, true
}

func serviceFindings(s *Snapshot) []Finding {
	object := "Service/" + s.Namespace + "/" + WebhookName
	switch {
	case !s.Service.known():
		f := s.Service.unknown("whether the API server finds the webhook's pods")
		f.Object = object
		return []Finding{f}
	case !s.Service.present():
		return []Finding{{Severity: Critical, Object: object, Message: "it does not exist: the API server cannot call the webhook", Fix: reinstallFix}}
	case s.Service.Value.Addresses.present() && s.Service.Value.Addresses.Value == 0:
		return []Finding{{Severity: Critical, Object: object, Message: "it has no ready endpoint: the API server cannot call the webhook", Fix: unreachableFix}}
	default:
		return nil
	}
}

// checkVersions compares what every part says its version is.
func checkVersions(s *Snapshot) []Finding {
	parts := map[string][]string{}
	add := func(version, part string) {
		if version != "" && !slices.Contains(parts[version], part) {
			parts[version] = append(parts[version], part)
		}
	}
	for _, w := range s.Workloads.Value {
		if w.Component != "redis" {
			add(w.Version, "Deployment/"+w.Name)
		}
	}
	for _, p := range s.Pods.Value {
		if slices.Contains([]string{webhookComponent, assessorComponent, executorComponent, discoveryComponent}, p.Component) {
			add(p.Version, "pods of "+p.Component)
		}
	}
	for _, w := range s.ours() {
		add(w.Labels[versionLabel], w.object())
	}
	for _, p := range s.Policies.Value.Policies {
		if slices.Contains(policyNames, p.Name) {
			add(p.Labels[versionLabel], p.Kind+"/"+p.Name)
		}
	}
	return slices.Concat(skewFindings(s, parts), stampFindings(s), unreadVersions(s))
}

// stampFindings tells of replicas that run a release under the label of another one, as
// after image.tag was set.
func stampFindings(s *Snapshot) []Finding {
	var out []Finding
	for _, p := range s.Pods.Value {
		if !isRelease(p.Build) || !isRelease(p.Version) || sameVersion(p.Build, p.Version) {
			continue
		}
		out = append(out, Finding{Severity: Warning, Object: "Pod/" + s.Namespace + "/" + p.Name,
			Message: fmt.Sprintf("its binary is of version %s, and the chart that installed it of version %s", p.Build, p.Version),
			Fix:     "take image.tag and image.digest out of the values of the chart, and apply the chart again"})
	}
	return out
}

// isRelease tells a version from what a build without one says.
func isRelease(version string) bool {
	version = strings.TrimPrefix(version, "v")
	return version != "" && version[0] >= '0' && version[0] <= '9'
}

func sameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

// unreadVersions: a part that cannot be read may be of any version.
func unreadVersions(s *Snapshot) []Finding {
	const what = "whether all parts are of one version"
	var out []Finding
	if !s.Workloads.known() {
		out = append(out, s.Workloads.unknown(what))
	}
	if !s.Pods.known() {
		out = append(out, s.Pods.unknown(what))
	}
	if !s.Webhooks.known() {
		out = append(out, s.Webhooks.unknown(what))
	}
	if !s.Policies.known() {
		out = append(out, s.Policies.unknown(what))
	}
	return out
}

const versionLabel = "app.kubernetes.io/version"

func skewFindings(s *Snapshot, parts map[string][]string) []Finding {
	versions := make([]string, 0, len(parts))
	for version := range parts {
		versions = append(versions, version)
	}
	slices.Sort(versions)
	var out []Finding
	if len(versions) > 1 {
		words := make([]string, 0, len(versions))
		for _, version := range versions {
			words = append(words, version+" ("+named(parts[version])+")")
		}
		out = append(out, Finding{Severity: Warning, Message: "parts of different versions run: " + strings.Join(words, "; ") +
			". That is normal during an upgrade and not after it", Fix: "kubectl rollout status deployment -n " + s.Namespace + "\n" + reinstallFix})
	}
	if len(versions) == 1 && isRelease(s.ClientVersion) && !sameVersion(s.ClientVersion, versions[0]) {
		out = append(out, Finding{Severity: Info, Message: fmt.Sprintf("this plugin is of version %s, the installation of version %s", s.ClientVersion, versions[0])})
	}
	return out
}

// Kubernetes versions, as minor of 1: policies that validate, and that mutate.
const (
	minorValidating = 30
	minorMutating   = 36
)

func checkAPIServer(s *Snapshot) []Finding {
	if !s.Server.present() {
		return []Finding{s.Server.unknown("which version the API server has")}
	}
	var out []Finding
	v := s.Server.Value
	if v.Major == 1 && v.Minor < minorValidating {
		out = append(out, Finding{Severity: Critical, Message: fmt.Sprintf("Kubernetes %s has no ValidatingAdmissionPolicy v1, which Plumbline's own protection rests on", v.GitVersion), Fix: "Kubernetes 1.30 or newer"})
	}
	if s.Resources.known() && !s.serves("admissionregistration.k8s.io", "mutatingadmissionpolicies") {
		out = append(out, Finding{Severity: Info, Message: fmt.Sprintf("Kubernetes %s serves no MutatingAdmissionPolicy v1 (1.%d does): the webhook has to stamp the writer, and does not while it is away", v.GitVersion, minorMutating)})
	}
	if n := len(s.APIServers.Value); n > 1 {
		out = append(out, Finding{Severity: Info, Message: fmt.Sprintf("%d API servers run; each learns of policies, guards and certificates by itself, and this report saw one of them", n)})
	}
	if s.Skew.present() && s.Skew.Value.Abs() > maxSkew {
		out = append(out, Finding{Severity: Warning, Message: fmt.Sprintf("the clock of this machine and that of the API server differ by %s; if the cluster's is off, certificates and ages are wrong", s.Skew.Value.Abs().Round(time.Second)), Fix: "check NTP on both"})
	}
	if len(out) == 0 {
		return []Finding{{Severity: OK, Message: "Kubernetes " + v.GitVersion + " meets Plumbline's needs"}}
	}
	return out
}
