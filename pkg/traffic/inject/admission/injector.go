// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

const (
	// askTimeout bounds a question to the API server; it waits five seconds for us.
	askTimeout = 2 * time.Second
	// maxMessageBytes is the longest warning that every client shows uncut. What a
	// decision says may quote an annotation, which may be long.
	maxMessageBytes = 256
)

// The verdicts about a pod.
const (
	// VerdictInjected: the pod gets a proxy.
	VerdictInjected admission.Verdict = "injected"
	// VerdictLeft: the pod did not ask for a proxy, or has one.
	VerdictLeft admission.Verdict = "left"
	// VerdictRefused: the pod asked for a proxy and cannot have one; it is created
	// without, and the writer was told.
	VerdictRefused admission.Verdict = "refused"
)

// Labels gives those of a namespace.
type Labels interface {
	// Known are the labels as they were last heard of; nil: nothing was heard.
	Known(namespace string) map[string]string
	// Ask asks the API server.
	Ask(ctx context.Context, namespace string) (map[string]string, error)
}

// Injector answers reviews of pods. All fields are set once; Review may be called
// from any number of goroutines.
type Injector struct {
	Config     inject.Config
	Namespaces Labels
	Metrics    *Metrics
	Log        *slog.Logger
}

// Review says what becomes of a pod that is created.
func (i *Injector) Review(ctx context.Context, r *admission.Review) admission.Answer {
	if !createsPod(r) {
		return admission.Answer{Verdict: VerdictLeft}
	}
	var pod corev1.Pod
	// A field that we do not know stays: the patch only adds.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.Object, &pod); err != nil {
		return admission.Unassessed(admission.ReasonObject, fmt.Errorf("reading the pod: %w", err))
	}
	decision, err := i.decide(ctx, r.Namespace, &pod)
	if err != nil {
		return admission.Unassessed(admission.ReasonNamespace, err)
	}
	answer, err := i.answer(decision, &pod)
	if err != nil {
		return admission.Unassessed(admission.ReasonPatch, err)
	}
	i.Metrics.observe(decision)
	if decision.Outcome == inject.Refuse {
		i.logRefusal(ctx, r, &pod, decision)
	}
	return answer
}

// createsPod: the webhook is registered for nothing else, and a patch of anything
// else would be wrong.
func createsPod(r *admission.Review) bool {
	return r.Kind == schema.GroupVersionKind{Version: "v1", Kind: "Pod"} && r.SubResource == "" && r.Operation == admissionv1.Create
}

// decide goes by what is known of the namespace if the pod gets a proxy by that. Else
// it asks: the API server calls for pods that asked, so that it may have heard of a
// label which we have not heard of yet.
func (i *Injector) decide(ctx context.Context, namespace string, pod *corev1.Pod) (inject.Decision, error) {
	if labels := i.Namespaces.Known(namespace); labels != nil {
		d := inject.Decide(pod, labels, i.Config)
		if d.Outcome == inject.Inject || d.Reason == inject.AlreadyInjected {
			return d, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	labels, err := i.Namespaces.Ask(ctx, namespace)
	if err != nil {
		return inject.Decision{}, fmt.Errorf("reading the labels of namespace %q: %w", namespace, err)
	}
	return inject.Decide(pod, labels, i.Config), nil
}

func (i *Injector) answer(d inject.Decision, pod *corev1.Pod) (admission.Answer, error) {
	answer := admission.Answer{Audit: map[string]string{"outcome": string(d.Outcome), "reason": string(d.Reason)}}
	switch d.Outcome {
	case inject.Inject:
		patch, err := inject.Patch(pod, i.Config, d.Mode)
		if err != nil {
			return admission.Answer{}, err
		}
		answer.Verdict, answer.Patch = VerdictInjected, patch
	case inject.Leave:
		// Others may have changed the pod since it got its proxy.
		patch, err := inject.PatchAgain(pod, i.Config)
		if err != nil {
			return admission.Answer{}, err
		}
		answer.Verdict, answer.Patch = VerdictLeft, patch
	case inject.Refuse:
		answer.Verdict, answer.Warnings = VerdictRefused, []string{warning(d)}
	default:
		return admission.Answer{}, fmt.Errorf("the outcome %q is unknown", d.Outcome)
	}
	return answer, nil
}

func warning(d inject.Decision) string {
	return diff.TruncateText(fmt.Sprintf("plumbline: the pod gets no proxy (%s): %s", d.Reason, d.Message), maxMessageBytes)
}

// logRefusal tells the people of the cluster, because a controller that creates pods
// shows the warning to nobody.
func (i *Injector) logRefusal(ctx context.Context, r *admission.Review, pod *corev1.Pod, d inject.Decision) {
	name, owner := r.Name, ""
	if name == "" {
		name = pod.GenerateName
	}
	if len(pod.OwnerReferences) > 0 {
		owner = pod.OwnerReferences[0].Kind + "/" + pod.OwnerReferences[0].Name
	}
	text := func(key, value string) slog.Attr {
		return slog.String(key, diff.TruncateText(value, maxMessageBytes))
	}
	i.Log.LogAttrs(ctx, slog.LevelWarn, "injection.refused", text("namespace", r.Namespace), text("name", name), text("owner", owner),
		text("reason", string(d.Reason)), text("message", d.Message))
}
