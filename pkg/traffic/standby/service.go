// SPDX-License-Identifier: Apache-2.0

package standby

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Reason says in one word why no standby can answer the requests of a Deployment.
type Reason string

// The reasons.
const (
	// NoService: no managed Service selects pods of the Deployment.
	NoService Reason = "NoService"
	// SeveralServices: more than one managed Service selects them.
	SeveralServices Reason = "SeveralServices"
	// SharedService: the Service selects pods of others as well, which an ABRelease would leave out.
	SharedService Reason = "SharedService"
	// ServiceRefused: proxies leave the Service alone.
	ServiceRefused Reason = "ServiceRefused"
	// ServiceHasRelease: an ABRelease divides the requests of the Service already.
	ServiceHasRelease Reason = "ServiceHasRelease"
	// InQuarantine: proxies send the Deployment no requests.
	InQuarantine Reason = "InQuarantine"
)

// Obstacle is why no standby can answer the requests of a Deployment; the zero value is none.
type Obstacle struct {
	Reason  Reason
	Message string
}

// String returns the reason with its message; empty without an obstacle.
func (o Obstacle) String() string {
	if o.Reason == "" {
		return ""
	}
	return string(o.Reason) + ": " + o.Message
}

func obstacle(r Reason, format string, args ...any) (*corev1.Service, Obstacle) {
	return nil, Obstacle{r, fmt.Sprintf(format, args...)}
}

// FindService returns the one managed Service that a Deployment is behind, or what stands against a
// standby. in has the managed Services of the namespace and all that belongs to them, and releases are
// its ABReleases but for the one of the standby.
func FindService(in ir.Inputs, releases []v1alpha1.ABRelease, w traffic.Workload) (*corev1.Service, Obstacle) {
	services := slices.DeleteFunc(slices.Clone(in.Services), func(s *corev1.Service) bool {
		return s.Labels[ir.Managed] != "true" || !slices.ContainsFunc(in.Pods, func(p ir.Pod) bool { return p.Workload == w && selects(s, p) })
	})
	switch len(services) {
	case 0:
		return obstacle(NoService, "no Service with the label %s=true selects pods of Deployment %s", ir.Managed, w.Name)
	case 1:
	default:
		names := make([]string, 0, len(services))
		for _, s := range services {
			names = append(names, s.Name)
		}
		slices.Sort(names)
		return obstacle(SeveralServices, "the Services %s select pods of Deployment %s: only one may", strings.Join(names, ", "), w.Name)
	}
	service := services[0]
	for _, p := range in.Pods {
		if p.Workload != w && selects(service, p) {
			return obstacle(SharedService, "the Service %s selects pods of %s %s as well", service.Name, p.Workload.Kind, p.Workload.Name)
		}
	}
	for i := range releases {
		if r := &releases[i]; r.Spec.ServiceName == service.Name {
			return obstacle(ServiceHasRelease, "ABRelease %s divides the requests of Service %s", r.Name, service.Name)
		}
	}
	if slices.Contains(in.Quarantined, w) {
		return obstacle(InQuarantine, "proxies send no requests to Deployment %s", w.Name)
	}
	return accepted(in, service)
}

// accepted returns a Service that proxies do not leave alone.
func accepted(in ir.Inputs, service *corev1.Service) (*corev1.Service, Obstacle) {
	for _, p := range ir.Build(in).Problems {
		if p.Refused && p.Object.Kind == "Service" && p.Object.Name == service.Name {
			return obstacle(ServiceRefused, "proxies leave Service %s alone: %s", service.Name, p.Message)
		}
	}
	return service, Obstacle{}
}

func selects(s *corev1.Service, p ir.Pod) bool {
	return len(s.Spec.Selector) > 0 && p.Namespace == s.Namespace && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels))
}
