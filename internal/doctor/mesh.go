// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// DiscoveryName is that of the discovery server's Deployment.
const DiscoveryName = "plumbline-xds"

// Mesh is the state that proxies depend on. But for the pods with proxies, it is read only
// where there is a discovery server.
type Mesh struct {
	// Problems of managed Services: proxies leave them, or a port, or a part of what they ask
	// for, alone.
	Problems Read[[]ir.Problem]
	// Authorities are the namespaces with a copy of the discovery server's authority.
	Authorities Read[map[string]bool]
	// Mode is that of pods which name none.
	Mode Read[inject.Mode]
	// Injected are pods with proxies that run, Connected those that a replica knows, both
	// as namespace/name.
	Injected  Read[[]string]
	Connected Read[map[string]bool]
	// Doubled are the injected pods that have a proxy of Istio as well, whether they run or not.
	Doubled Read[[]string]
	// Unserved are what connected proxies ask for and cannot have, by namespace/name.
	Unserved Read[map[string][]string]
}

// HasMesh says whether there is a discovery server.
func (s *Snapshot) HasMesh() ReadState { return s.hasWorkload(DiscoveryName) }

// withMesh asks where there is a mesh, and says so where there is none.
func withMesh(what string, run func(*Snapshot) []Finding) func(*Snapshot) []Finding {
	return withPart((*Snapshot).HasMesh, "the mesh is not enabled", what, run)
}

// maxProblems is how many findings one check has about Services.
const maxProblems = 20

// checkMeshServices finds Services that somebody wants managed and that are not, and Services of
// which proxies do not follow all.
func checkMeshServices(s *Snapshot) []Finding {
	if !s.Mesh.Problems.known() {
		return []Finding{s.Mesh.Problems.unknown("whether proxies have routes for all managed Services")}
	}
	var out []Finding
	for i, p := range s.Mesh.Problems.Value {
		if i == maxProblems {
			return append(out, Finding{Severity: Warning, Message: fmt.Sprintf("there are %d more problems", len(s.Mesh.Problems.Value)-i)})
		}
		where := ""
		if p.Port != 0 {
			where = fmt.Sprintf("port %d: ", p.Port)
		}
		fix := "kubectl edit service " + p.Object.Name + " -n " + p.Object.Namespace
		if p.Refused {
			fix = "or take it out of the mesh:\nkubectl label service " + p.Object.Name + " -n " + p.Object.Namespace + " " + ir.Managed + "-"
		}
		out = append(out, Finding{
			Severity: Warning, Object: p.Object.Kind + "/" + p.Object.Namespace + "/" + p.Object.Name,
			Message: where + string(p.Reason) + ": " + p.Message, Fix: fix,
		})
	}
	return out
}

// optedIn are the namespaces whose pods get proxies.
func (s *Snapshot) optedIn() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces.Value)) {
		if s.Namespaces.Value[name][inject.LabelInject] == inject.Enabled {
			names = append(names, name)
		}
	}
	return names
}

// checkMeshAuthority finds namespaces whose injected pods could not start: a volume of
// theirs is of a ConfigMap that is not there.
func checkMeshAuthority(s *Snapshot) []Finding {
	const what = "whether proxies have the authority of the discovery server"
	switch {
	case !s.Namespaces.known():
		return []Finding{s.Namespaces.unknown(what)}
	case !s.Mesh.Authorities.known():
		return []Finding{s.Mesh.Authorities.unknown(what)}
	}
	missing := slices.DeleteFunc(s.optedIn(), func(name string) bool { return s.Mesh.Authorities.Value[name] })
	if len(missing) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Object: "ConfigMap/" + missing[0] + "/" + inject.CAConfigMap,
		Message: fmt.Sprintf("pods with proxies cannot start in %s: the ConfigMap %s is not there", named(missing), inject.CAConfigMap),
		Fix:     "kubectl logs -n " + s.Namespace + " -l app.kubernetes.io/component=xds --tail=200\nits leader makes the copies",
	}}
}

// podSecurity is the label by which a namespace refuses pods; of its levels these two
// refuse the container that sets the rules of mode redirect, which needs NET_ADMIN.
const podSecurity = "pod-security.kubernetes.io/enforce"

var withoutNetAdmin = []string{"baseline", "restricted"}

// checkMeshPodSecurity finds namespaces whose injected pods the API server refuses.
func checkMeshPodSecurity(s *Snapshot) []Finding {
	const what = "whether namespaces admit pods with proxies"
	if !s.Namespaces.known() {
		return []Finding{s.Namespaces.unknown(what)}
	}
	var out []Finding
	for _, name := range s.optedIn() {
		labels := s.Namespaces.Value[name]
		mode := inject.Mode(labels[inject.LabelMode])
		if !slices.Contains(withoutNetAdmin, labels[podSecurity]) {
			continue
		}
		if mode == "" {
			if !s.Mesh.Mode.present() {
				return []Finding{s.Mesh.Mode.unknown(what)}
			}
			mode = s.Mesh.Mode.Value
		}
		if mode == inject.Redirect {
			out = append(out, Finding{
				Severity: Warning, Object: "Namespace/" + name,
				Message: fmt.Sprintf("it enforces Pod Security %s, which refuses pods of mode %s: their init container needs NET_ADMIN", labels[podSecurity], mode),
				Fix:     "kubectl label namespace " + name + " " + inject.LabelMode + "=" + string(inject.Explicit) + "\nor let it enforce privileged",
			})
		}
	}
	return out
}

// checkMeshProxies finds pods whose proxies learn of no change.
func checkMeshProxies(s *Snapshot) []Finding {
	const what = "whether all proxies are connected"
	switch {
	case !s.Mesh.Injected.known():
		return []Finding{s.Mesh.Injected.unknown(what)}
	case len(s.Mesh.Injected.Value) == 0:
		return []Finding{{Severity: OK, Message: "no pod with a proxy runs"}}
	case !s.Mesh.Connected.known():
		return []Finding{s.Mesh.Connected.unknown(what)}
	}
	lost := slices.DeleteFunc(slices.Clone(s.Mesh.Injected.Value), func(pod string) bool { return s.Mesh.Connected.Value[pod] })
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return []Finding{{
		Severity: Warning, Object: "Pod/" + lost[0],
		Message: fmt.Sprintf("%d of %d proxies are not connected to the discovery server, and learn of no change: %s", len(lost), len(s.Mesh.Injected.Value), named(lost)),
		Fix:     "kubectl plumbline proxies -A --stage NotConnected\nand the log of the container " + inject.ProxyContainer + " of such a pod",
	}}
}

// checkMeshOrphans finds pods whose proxies the discovery server has left: an uninstallation
// keeps them with the endpoints of that moment. Before it, the pods are counted.
func checkMeshOrphans(s *Snapshot) []Finding {
	const what = "whether proxies run without a discovery server"
	mesh := s.HasMesh()
	switch {
	case s.Namespace != "" && mesh == ReadUnknown:
		return []Finding{s.Workloads.unknown(what)}
	case !s.Mesh.Injected.known():
		return []Finding{s.Mesh.Injected.unknown(what)}
	}
	pods := slices.Sorted(slices.Values(s.Mesh.Injected.Value))
	switch {
	case len(pods) == 0:
		return []Finding{{Severity: OK, Message: "no pod with a proxy runs"}}
	case mesh == ReadValue:
		return []Finding{{Severity: OK, Message: fmt.Sprintf("pods with proxies run: %d; take the labels off and restart these pods before you uninstall Plumbline or its mesh", len(pods))}}
	}
	return []Finding{{
		Severity: Warning, Object: "Pod/" + pods[0],
		Message: fmt.Sprintf("there is no discovery server, so proxies keep the endpoints of the moment at which it went; pods with one: %d: %s", len(pods), named(pods)),
		Fix:     "install the mesh again, or take the label " + inject.LabelInject + " off the namespaces and pods, and then\nkubectl rollout restart deployment,statefulset,daemonset -n NAMESPACE",
	}}
}

// checkMeshIstio finds pods with two proxies that need the same ports, and namespaces that ask for
// both: there, the webhook that is called later finds the proxy of the other mesh.
func checkMeshIstio(s *Snapshot) []Finding {
	const what = "whether Istio has proxies in the same pods"
	switch {
	case !s.Namespaces.known():
		return []Finding{s.Namespaces.unknown(what)}
	case !s.Mesh.Doubled.known():
		return []Finding{s.Mesh.Doubled.unknown(what)}
	}
	var out []Finding
	if pods := slices.Sorted(slices.Values(s.Mesh.Doubled.Value)); len(pods) > 0 {
		out = append(out, Finding{
			Severity: Warning, Object: "Pod/" + pods[0],
			Message: fmt.Sprintf("a proxy of Istio runs beside that of Plumbline, and one of the two cannot have its ports; pods with both: %d: %s", len(pods), named(pods)),
			Fix:     "set " + inject.LabelInject + ": " + inject.Disabled + " or sidecar.istio.io/inject: \"false\" in the template of the pods",
		})
	}
	both := slices.DeleteFunc(s.optedIn(), func(name string) bool { return !inject.AsksForIstio(s.Namespaces.Value[name]) })
	if len(both) > 0 {
		out = append(out, Finding{
			Severity: Warning, Object: "Namespace/" + both[0],
			Message: fmt.Sprintf("labels ask for proxies of Istio and of Plumbline, so pods that start there get no proxy of Plumbline (%s), unless they opt out of Istio: %s", inject.OtherMesh, named(both)),
			Fix:     "kubectl label namespace " + both[0] + " " + inject.LabelInject + "-\nor take the label of Istio off",
		})
	}
	return out
}

// checkMeshUpstreams finds proxies that do not get what their pods ask for.
func checkMeshUpstreams(s *Snapshot) []Finding {
	if !s.Mesh.Unserved.known() {
		return []Finding{s.Mesh.Unserved.unknown("whether proxies get all Services that their pods ask for")}
	}
	var out []Finding
	told := map[string]bool{} // pods of one Deployment miss the same
	pods := slices.Sorted(maps.Keys(s.Mesh.Unserved.Value))
	for i, pod := range pods {
		if len(out) == maxProblems {
			return append(out, Finding{Severity: Warning, Message: fmt.Sprintf("there are %d more pods with proxies that miss some of their dependencies", len(pods)-i)})
		}
		for _, what := range s.Mesh.Unserved.Value[pod] {
			if !told[what] {
				told[what] = true
				out = append(out, Finding{
					Severity: Warning, Object: "Pod/" + pod, Message: "its proxy does not get all that the pod asks for: " + what,
					Fix: "follow the message, or take the Service out of the annotation of the pod or its namespace\n" + fmt.Sprintf("kubectl plumbline proxies %s", inNamespace(pod)),
				})
			}
		}
	}
	return out
}

// inNamespace are the arguments of kubectl for a pod.
func inNamespace(pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	return name + " -n " + namespace
}
