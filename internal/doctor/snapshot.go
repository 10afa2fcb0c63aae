// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReadState is the result of reading something. The zero value is unknown, so
// that what nobody read is not taken for read.
type ReadState int

// The results of a read.
const (
	ReadUnknown ReadState = iota
	ReadAbsent
	ReadValue
)

// Read is a value, known to be absent, or unknown.
type Read[T any] struct {
	Value T
	State ReadState
	// Reason says why it is unknown.
	Reason string
	// Right is the missing right, such as "list secrets", when that is why.
	Right string
}

// Got is a read that succeeded.
func Got[T any](value T) Read[T] { return Read[T]{Value: value, State: ReadValue} }

// Gone is a read that proved that there is nothing.
func Gone[T any]() Read[T] { return Read[T]{State: ReadAbsent} }

func (r Read[T]) known() bool   { return r.State != ReadUnknown }
func (r Read[T]) present() bool { return r.State == ReadValue }

// unknown words an unknown read as a finding; what completes "cannot tell ...".
func (r Read[T]) unknown(what string) Finding {
	f := Finding{Severity: Unknown, Message: "cannot tell " + what + ": " + r.why()}
	if r.Right != "" {
		f.Permission = r.Right
		f.Fix = "run as a user with the permission to " + r.Right + ", or ask a user with the permission"
	}
	return f
}

// why says in a few words why something is unknown.
func (r Read[T]) why() string {
	switch {
	case r.Right != "":
		return "your user may not " + r.Right
	case r.Reason != "":
		return r.Reason
	default:
		return "it was not read"
	}
}

// User is who asks.
type User struct {
	Name   string
	Groups []string
}

// ServerVersion of the API server that answered.
type ServerVersion struct {
	GitVersion   string
	Major, Minor int
}

// Resource is one line of discovery; Name is plural and may hold a subresource.
type Resource struct {
	Group, Version, Name, Kind string
	Namespaced                 bool
}

// Webhook is one entry of a webhook configuration of either kind.
type Webhook struct {
	Mutating      bool
	Configuration string
	// Labels and Annotations of the configuration.
	Labels, Annotations map[string]string
	Name                string
	Client              admissionv1.WebhookClientConfig
	Rules               []admissionv1.RuleWithOperations
	FailurePolicy       admissionv1.FailurePolicyType
	MatchPolicy         admissionv1.MatchPolicyType
	SideEffects         admissionv1.SideEffectClass
	NamespaceSelector   *metav1.LabelSelector
	ObjectSelector      *metav1.LabelSelector
	TimeoutSeconds      int32
	Reinvoked           bool
	Conditions          []admissionv1.MatchCondition
}

// Policy is a MutatingAdmissionPolicy or a ValidatingAdmissionPolicy.
type Policy struct {
	Kind, Name        string
	Labels            map[string]string
	FailurePolicy     admissionv1.FailurePolicyType
	ParamKind         string
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	Rules             []admissionv1.NamedRuleWithOperations
	Excluded          []admissionv1.NamedRuleWithOperations
	// Effects counts validations or mutations.
	Effects int
	// Conditions are the names of its matchConditions.
	Conditions []string
	// TypeWarnings are what the API server says about the expressions.
	TypeWarnings []string
}

// Binding of a policy.
type Binding struct {
	Kind, Name, Policy string
	Actions            []admissionv1.ValidationAction
	Param              *admissionv1.ParamRef
	// Restricted: the binding matches fewer objects than the policy.
	Restricted bool
}

// Policies are all policies and bindings of a cluster.
type Policies struct {
	Policies []Policy
	Bindings []Binding
}

// Workload is one Deployment of the installation.
type Workload struct {
	Name, Component, Version string
	Labels, Annotations      map[string]string
	Desired, Ready           int32
	Args                     []string
	// Fleeting are the volumes that go with a pod.
	Fleeting []string
}

// Pod is one replica of the installation.
type Pod struct {
	Name, Component, Version string
	Ready                    bool
	// Metrics are its samples by metric name, read through the API server.
	Metrics Read[Metrics]
	// Build is the version that is stamped into its binary; empty where its metrics were
	// not read.
	Build string
	// Records is present when a replica of the executor serves its records, through
	// the API server.
	Records Read[struct{}]
	// Skew is how far the clock of a replica of the REST API is ahead of the API server's.
	Skew Read[time.Duration]
}

// Lease is a leader's.
type Lease struct {
	Holder   string
	Renewed  time.Time
	Duration time.Duration
}

// Roles are the rights of a cluster.
type Roles struct {
	// ClusterRoles by name, Roles by namespace/name.
	ClusterRoles, Roles map[string][]rbacv1.PolicyRule
	// ClusterBindings hold everywhere, Bindings in their namespace.
	ClusterBindings, Bindings []RoleBinding
}

// RoleBinding of either kind; Namespace is empty for a ClusterRoleBinding.
type RoleBinding struct {
	Namespace string
	Role      rbacv1.RoleRef
	Subjects  []rbacv1.Subject
}

// Guard is a SpecGuard, or a ClusterSpecGuard without Namespace.
type Guard struct {
	Namespace, Name string
	Generation      int64
	Spec            v1alpha1.GuardSpec
	// NamespaceSelector is a ClusterSpecGuard's.
	NamespaceSelector *metav1.LabelSelector
	Status            v1alpha1.GuardStatus
}

// ID names the guard as Kind/namespace/name or Kind/name.
func (g *Guard) ID() string {
	if g.Namespace == "" {
		return "ClusterSpecGuard/" + g.Name
	}
	return "SpecGuard/" + g.Namespace + "/" + g.Name
}

// Baselines sums up all Baselines, so that no snapshot holds them.
type Baselines struct {
	Total int
	// Unread are those whose object could not be read, the first few by name.
	Unread      int
	UnreadNames []string
	// Unchecked were never compared.
	Unchecked int
	// Overdue should have been compared by now, the first few by name.
	Overdue      int
	OverdueNames []string
	// OldestCheck is the oldest last comparison; zero without any.
	OldestCheck time.Time
}

// ServiceStatus is the Service in front of the webhook.
type ServiceStatus struct {
	Ports []int32
	// Addresses counts ready endpoints.
	Addresses Read[int]
}

// Snapshot is what was read of a cluster.
type Snapshot struct {
	// Now is the API server's time where it told, else the caller's.
	Now time.Time
	// Skew is how far the caller's clock is ahead of the API server's.
	Skew Read[time.Duration]
	// ClientVersion is the plugin's.
	ClientVersion string
	// Namespace of the installation, empty when it was not found.
	Namespace string

	User       Read[User]
	Server     Read[ServerVersion]
	APIServers Read[[]string]
	Resources  Read[[]Resource]
	// Namespaces and their labels, those left out that are being deleted.
	Namespaces Read[map[string]map[string]string]

	Webhooks  Read[[]Webhook]
	Policies  Read[Policies]
	Roles     Read[Roles]
	Guards    Read[[]Guard]
	Baselines Read[Baselines]

	Workloads     Read[[]Workload]
	Pods          Read[[]Pod]
	Service       Read[ServiceStatus]
	Certificate   Read[Certificate]
	AssessorLease Read[Lease]

	// Remediation is what puts drift back.
	Remediation Remediation

	// Mesh is what proxies depend on.
	Mesh Mesh

	// Delivery is what rollouts depend on.
	Delivery Delivery

	// Routers is the state that splits at TrafficRouters depend on.
	Routers Routers

	// API is what callers of the REST API depend on.
	API API

	// GitOps is read only where such a tool is in the cluster or left its mark.
	GitOps GitOps

	// Probes are real writes, none of which is stored.
	Probes Probes
}

// serves says that the API server serves a resource, in any version of the group.
func (s *Snapshot) serves(group, resource string) bool {
	for _, r := range s.Resources.Value {
		if r.Group == group && r.Name == resource {
			return true
		}
	}
	return false
}

// namespaceLabels gives a namespace's labels. Where they could not be read it is
// the one label that the API server itself puts on every namespace.
func (s *Snapshot) namespaceLabels(name string) map[string]string {
	if labels, ok := s.Namespaces.Value[name]; ok {
		return labels
	}
	return map[string]string{corev1.LabelMetadataName: name}
}

// hasWorkload tells whether the installation has a Deployment.
func (s *Snapshot) hasWorkload(name string) ReadState {
	switch {
	case s.Namespace == "" || !s.Workloads.known():
		return ReadUnknown
	case slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == name }):
		return ReadValue
	}
	return ReadAbsent
}

// withPart asks where a part is installed, and says that it is absent where it is not.
func withPart(has func(*Snapshot) ReadState, absent, what string, run func(*Snapshot) []Finding) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		switch has(s) {
		case ReadValue:
			return run(s)
		case ReadAbsent:
			return []Finding{{Severity: OK, Message: absent}}
		case ReadUnknown:
		}
		return []Finding{s.Workloads.unknown(what)}
	}
}
