// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// The words about a proxy as a whole, besides the stages of [proxieshttp.Stages].
const (
	// NotConnected: the pod has a proxy, and no replica knows it.
	NotConnected ads.Stage = "NotConnected"
	// Unknown: that cannot be said, since a replica did not answer.
	Unknown ads.Stage = "Unknown"
)

// Stages are those of a proxy as a whole, the worst first.
func Stages() []ads.Stage {
	return []ads.Stage{
		NotConnected, proxieshttp.Blocked, ads.Refused, ads.Held, Unknown,
		ads.Going, ads.OnTheWay, ads.Queued, proxieshttp.Waiting, ads.Acknowledged,
	}
}

// Absent tells whether no replica can say a stage of a proxy.
func Absent(s ads.Stage) bool { return s == NotConnected || s == Unknown }

// Filter selects proxies.
type Filter = proxieshttp.Filter

// Report has the answers of the replicas of the discovery server.
type Report struct {
	Replicas []Replica `json:"replicas"`
	Proxies  []Proxy   `json:"proxies"`
}

// Replica says whether a replica of the discovery server answered.
type Replica struct {
	Name     string `json:"name"`
	Answered bool   `json:"answered"`
	Error    string `json:"error,omitempty"`

	err error
}

// Proxy is a proxy, and the replica that told of it.
type Proxy struct {
	// Stage is the worst of it.
	Stage   ads.Stage `json:"stage"`
	Replica string    `json:"replica,omitempty"`
	proxieshttp.Proxy
}

// newProxy sums a proxy up.
func newProxy(replica string, p *proxieshttp.Proxy) Proxy {
	r := Proxy{Replica: replica, Proxy: *p, Stage: ads.Acknowledged}
	for _, s := range Stages() {
		if p.Stages[s] > 0 || s == proxieshttp.Blocked && p.Blocked || s == proxieshttp.Waiting && p.Waiting {
			r.Stage = s
			break
		}
	}
	return r
}

// AddAbsent adds the injected pods that run and that no replica has told of.
func (r *Report) AddAbsent(pods []corev1.Pod) {
	type name struct{ namespace, pod string }
	known := map[name]bool{}
	for i := range r.Proxies {
		known[name{r.Proxies[i].Namespace, r.Proxies[i].Pod}] = true
	}
	stage := NotConnected
	if r.Silent() != nil {
		stage = Unknown
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || known[name{pod.Namespace, pod.Name}] {
			continue
		}
		r.Proxies = append(r.Proxies, Proxy{Stage: stage, Proxy: proxieshttp.Proxy{
			Namespace: pod.Namespace, Pod: pod.Name, PodUID: string(pod.UID), ServiceAccount: pod.Spec.ServiceAccountName, Stages: map[ads.Stage]int{},
		}})
	}
}

// Sort sorts the proxies, the worst first.
func (r *Report) Sort() {
	rank := func(p *Proxy) int { return slices.Index(Stages(), p.Stage) }
	slices.SortFunc(r.Proxies, func(x, y Proxy) int {
		return cmp.Or(cmp.Compare(rank(&x), rank(&y)), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Pod, y.Pod),
			x.ConnectedSince.Compare(y.ConnectedSince), cmp.Compare(x.Replica, y.Replica))
	})
}

// SilentError names the replicas that did not answer.
type SilentError struct {
	// Names are those of the pods, of so many Replicas.
	Names    []string
	Replicas int
	// words has each name with the reason.
	words []string
	// Denied is the answer of the API server if it does not let the caller reach the port; nil otherwise.
	Denied *portforward.DeniedError
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%d of %d replicas of the discovery server did not answer, and the resources of their proxies are unknown: %s", len(e.words), e.Replicas, strings.Join(e.words, "; "))
}

// Silent returns an error of type *SilentError for replicas that did not answer; nil when all did.
func (r *Report) Silent() error {
	silent := &SilentError{Replicas: len(r.Replicas)}
	for _, replica := range r.Replicas {
		if replica.Answered {
			continue
		}
		silent.Names = append(silent.Names, replica.Name)
		silent.words = append(silent.words, replica.Name+" ("+replica.Error+")")
		if denied, is := errors.AsType[*portforward.DeniedError](replica.err); is {
			silent.Denied = denied
		}
	}
	if len(silent.words) == 0 {
		return nil
	}
	return silent
}

// Summarize counts the proxies by their stage.
func (r *Report) Summarize() string {
	counts := map[ads.Stage]int{}
	for i := range r.Proxies {
		counts[r.Proxies[i].Stage]++
	}
	var parts []string
	for _, s := range Stages() {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return fmt.Sprintf("%d proxies: %s", len(r.Proxies), strings.Join(parts, ", "))
}

// UnknownCount is said in place of the count of a proxy whose resources are not known.
const UnknownCount = "<unknown>"

// CountAcknowledged says how many of its resources a proxy has acknowledged, and returns a function that counts
// those of a stage; nothing where the resources are not known.
func (p *Proxy) CountAcknowledged() (acknowledged string, count func(ads.Stage) string) {
	if Absent(p.Stage) || p.Blocked || p.Waiting {
		return UnknownCount, func(ads.Stage) string { return "" }
	}
	total := 0
	for _, n := range p.Stages {
		total += n
	}
	return fmt.Sprintf("%d/%d", p.Stages[ads.Acknowledged], total), func(s ads.Stage) string { return fmt.Sprint(p.Stages[s]) }
}
