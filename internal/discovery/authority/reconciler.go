// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"crypto/x509"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// The label by which we know what is ours.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "plumbline-xds"
)

// Reconciler keeps the copy of one namespace at a time.
type Reconciler struct {
	// Reader has the caches of Run.
	Reader client.Reader
	Writer client.Writer
	// Namespace is Plumbline's own.
	Namespace string
	Recorder  events.EventRecorder
	Metrics   *Metrics
	Log       logr.Logger
}

// Reconcile implements reconcile.Reconciler; the request names a namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	place, found, err := r.place(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !found {
		r.Metrics.note(req.Name, "")
		return ctrl.Result{}, nil
	}
	present, err := r.read(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	bundle, err := r.bundle(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	action := Decide(place, view(present), bundle)
	if r.Metrics.note(req.Name, state(place, action, bundle)) && action == Report {
		r.report(req.Name, present)
	}
	return ctrl.Result{}, r.carry(ctx, action, req.Name, present, bundle)
}

// place reads what counts of a namespace; false when it is gone.
func (r *Reconciler) place(ctx context.Context, name string) (Place, bool, error) {
	var namespace corev1.Namespace
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return Place{}, false, nil
		}
		return Place{}, false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	proxies := pods()
	if err := r.Reader.List(ctx, proxies, client.InNamespace(name), client.Limit(1)); err != nil {
		return Place{}, false, fmt.Errorf("reading the proxies of namespace %s: %w", name, err)
	}
	return Place{
		Original: name == r.Namespace,
		Ending:   namespace.DeletionTimestamp != nil,
		Injects:  namespace.Labels[inject.LabelInject] == inject.Enabled,
		Proxies:  len(proxies.Items) > 0,
	}, true, nil
}

// read is the ConfigMap of a namespace; nil when there is none.
func (r *Reconciler) read(ctx context.Context, namespace string) (*corev1.ConfigMap, error) {
	var m corev1.ConfigMap
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: inject.CAConfigMap}, &m)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // Absence is a value here, not an error.
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, inject.CAConfigMap, err)
	default:
		return &m, nil
	}
}

// bundle is that of the original; empty when there is none that anybody could use.
func (r *Reconciler) bundle(ctx context.Context) (string, error) {
	original, err := r.read(ctx, r.Namespace)
	if err != nil || original == nil {
		return "", err
	}
	bundle := original.Data[inject.CAKey]
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(bundle)) {
		return "", nil
	}
	return bundle, nil
}

func view(m *corev1.ConfigMap) *Present {
	if m == nil {
		return nil
	}
	bundle, has := m.Data[inject.CAKey]
	p := &Present{Ours: m.Labels[LabelManagedBy] == ManagedBy, Bundle: bundle, More: len(m.Data) > 1 || len(m.BinaryData) > 0}
	p.More = p.More || (!has && len(m.Data) > 0)
	p.Immutable = m.Immutable != nil && *m.Immutable
	return p
}

// state is what pods find as long as the action is not carried out.
func state(place Place, action Action, bundle string) string {
	switch {
	case place.Original || place.Ending || !place.wants():
		return ""
	case action == Report:
		return stateForeign
	case action == Leave && bundle != "":
		return stateCurrent
	default:
		return stateStale
	}
}

// report tells of a ConfigMap that is not ours.
func (r *Reconciler) report(namespace string, theirs *corev1.ConfigMap) {
	const what = "This ConfigMap has the name of the one with the CA certificates for proxies, and is not Plumbline's: proxies of this namespace may not connect. Remove or rename it."
	r.Log.Info("authority.foreign", "namespace", namespace, "configmap", inject.CAConfigMap)
	r.Recorder.Eventf(theirs, nil, corev1.EventTypeWarning, "ConfigMapNotOurs", "Publish", what)
}

// carry carries an action out. Who was overtaken hears of it by the watch, and a
// namespace that began to end in the meantime needs nothing.
func (r *Reconciler) carry(ctx context.Context, action Action, namespace string, present *corev1.ConfigMap, bundle string) error {
	if action == Leave || action == Report {
		return nil
	}
	err := r.write(ctx, action, namespace, present, bundle)
	switch {
	case err == nil:
		r.Metrics.writes.WithLabelValues(action.String()).Inc()
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	default:
		return fmt.Errorf("%s ConfigMap %s/%s: %w", action, namespace, inject.CAConfigMap, err)
	}
}

func (r *Reconciler) write(ctx context.Context, action Action, namespace string, present *corev1.ConfigMap, bundle string) error {
	switch action {
	case Make:
		return r.Writer.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: inject.CAConfigMap,
				Labels: map[string]string{LabelManagedBy: ManagedBy, "app.kubernetes.io/part-of": "plumbline"},
			},
			Data: map[string]string{inject.CAKey: bundle},
		})
	case Mend:
		changed := present.DeepCopy() // with its version
		changed.Data, changed.BinaryData = map[string]string{inject.CAKey: bundle}, nil
		return r.Writer.Update(ctx, changed)
	case Remove, Replace: // What is gone and wanted is made when the watch tells.
		return r.Writer.Delete(ctx, present, client.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion})
	case Leave, Report:
		return nil
	default:
		return fmt.Errorf("unknown action %d", action)
	}
}
