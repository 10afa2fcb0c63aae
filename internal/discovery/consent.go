// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// NotExported is the reason of a Service that proxies ask for, and which is not exported
// to their namespace.
const NotExported ir.Reason = "NotExported"

// maxHidden is how many Services one problem names.
const maxHidden = 5

// notExported tells of Services that a redirected scope asks for without consent: of each
// that it names, and of the others once for each namespace.
func notExported(s Scope, hidden []types.NamespacedName) (problems []ir.Problem) {
	named := s.reach().others
	others := map[string][]string{}
	for _, name := range hidden {
		if _, exact := slices.BinarySearch(named, name.String()); !exact {
			others[name.Namespace] = append(others[name.Namespace], name.Name)
			continue
		}
		problems = append(problems, ir.Problem{
			Object: ir.Object{Kind: "Service", Namespace: name.Namespace, Name: name.Name}, Reason: NotExported,
			Message: fmt.Sprintf("pods of namespace %s do not get the Service, which the annotation %s names: %s", s.Namespace, UpstreamsAnnotation, consentText(s.Namespace, name.Namespace)),
		})
	}
	for namespace, names := range others {
		slices.Sort(names)
		shown := strings.Join(names[:min(len(names), maxHidden)], ", ")
		if len(names) > maxHidden {
			shown += ", ..."
		}
		problems = append(problems, ir.Problem{
			Object: ir.Object{Kind: "Namespace", Name: namespace}, Reason: NotExported,
			Message: fmt.Sprintf("pods of namespace %s do not get %d of the Services that %s/%s in the annotation %s asks for (%s): %s",
				s.Namespace, len(names), namespace, all, UpstreamsAnnotation, shown, consentText(s.Namespace, namespace)),
		})
	}
	slices.SortFunc(problems, func(a, b ir.Problem) int { return strings.Compare(a.String(), b.String()) })
	return problems
}

// consentText says how the owner of a Service exports it.
func consentText(to, from string) string {
	return fmt.Sprintf("the owner exports a Service with %s in the annotation %s of the Service or of namespace %s", to, ir.ExportToAnnotation, from)
}

// consentEvents make an Event on a pod that asks for Services without consent.
type consentEvents struct {
	recorder events.EventRecorder
	told     telling
}

// tell the owner of a pod.
func (e *consentEvents) tell(pod *corev1.Pod, problems []ir.Problem) {
	if !e.told.due(client.ObjectKeyFromObject(pod)) {
		return
	}
	note := strings.Join(textsOf(problems), "; ")
	e.recorder.Eventf(pod, nil, corev1.EventTypeWarning, string(NotExported), "Serve", "%s", diff.TruncateText(diff.Printable(note), maxNote))
}
