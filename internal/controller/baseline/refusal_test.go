// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var (
	errEtcd    = apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"})
	errInvalid = apierrors.NewInvalid(schema.GroupKind{Kind: "Baseline"}, "deployments.apps.web", nil)
	errTooBig  = apierrors.NewRequestEntityTooLargeError("limit is 3145728")
)

func TestRefusalsThatEachTryWouldMeet(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"none":                                  {},
		"a conflict":                            {err: apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("moved"))},
		"an internal error":                     {err: apierrors.NewInternalError(errors.New("etcdserver: leader changed"))},
		"a connection that broke":               {err: errors.New("request is too large")},
		"a body beyond the API server's limit":  {err: errTooBig, want: "StatusTooLarge"},
		"a request beyond etcd's limit":         {err: errEtcd, want: "StatusTooLarge"},
		"a message beyond the connection's":     {err: apierrors.NewInternalError(errors.New("rpc error: trying to send message larger than max (2200000 vs. 2097152)")), want: "StatusTooLarge"},
		"a wrapped one":                         {err: fmt.Errorf("writing: %w", errEtcd), want: "StatusTooLarge"},
		"a status that the schema does not let": {err: errInvalid, want: "StatusRefused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := refusalReason(tc.err); got != tc.want {
				t.Errorf("the reason is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestARefusedStatusDoesNotLeaveABaselineInSync is H8 of the guard's review.
func TestARefusedStatusDoesNotLeaveABaselineInSync(t *testing.T) {
	const filled = "filled"
	tests := map[string]struct {
		refuse func(*v1alpha1.Baseline) error
		want   string
		filled bool
	}{
		"no write is rejected": {want: "Drifted False DriftedOther, 40 of 40 findings", filled: true},
		"each status with more than one finding is too large": {
			refuse: func(b *v1alpha1.Baseline) error { return refuseIf(len(b.Status.Findings) > 1, errEtcd) },
			want:   "Unknown Unknown StatusTooLarge, 1 of 40 findings",
		},
		"the status is too large beside what people filled": {
			refuse: func(b *v1alpha1.Baseline) error { return refuseIf(b.Annotations[filled] != "", errTooBig) },
			want:   "Drifted False DriftedOther, 40 of 40 findings",
		},
		"the schema does not let the findings": {
			refuse: func(b *v1alpha1.Baseline) error { return refuseIf(len(b.Status.Findings) > 1, errInvalid) },
			want:   "Unknown Unknown StatusRefused, 1 of 40 findings", filled: true,
		},
		"the schema does not let any finding": {
			refuse: func(b *v1alpha1.Baseline) error { return refuseIf(len(b.Status.Findings) > 0, errInvalid) },
			want:   "Unknown Unknown StatusRefused, 0 of 0 findings", filled: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web", Annotations: map[string]string{
				filled: "to the brim", v1alpha1.AnnotationCheckRequested: "now",
			}}}
			b.Status.State = v1alpha1.StateInSync
			r := reconcilerThatMeets(t, tc.refuse, b)
			s := &subject{key: webKey, now: epoch, baseline: &v1alpha1.Baseline{}}
			if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(b), s.baseline); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time as after a restart
				next := s.baseline.DeepCopy()
				next.Status.State, next.Status.FindingsTotal = v1alpha1.StateDrifted, 40
				next.Status.Findings = make([]v1alpha1.Finding, 40)
				for i := range next.Status.Findings {
					next.Status.Findings[i] = v1alpha1.Finding{Path: fmt.Sprint("/spec/", i), Type: v1alpha1.DriftOther}
				}
				setConditions(next, false, epoch)
				if err := r.putStatus(t.Context(), s, next); err != nil {
					t.Fatal(err)
				}
				s.baseline = next
			}
			var got v1alpha1.Baseline
			if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(b), &got); err != nil {
				t.Fatal(err)
			}
			ready := readyOf(&got)
			text := fmt.Sprintf("%s %s %s, %d of %d findings", got.Status.State, ready.Status, ready.Reason, len(got.Status.Findings), got.Status.FindingsTotal)
			if text != tc.want {
				t.Errorf("it is %s, want %s", text, tc.want)
			}
			if (got.Annotations[filled] != "") != tc.filled || got.Annotations[v1alpha1.AnnotationCheckRequested] != "now" {
				t.Errorf("the annotations are %v", got.Annotations)
			}
		})
	}
}

func refuseIf(refused bool, err error) error {
	if refused {
		return err
	}
	return nil
}

// reconcilerThatMeets is a Reconciler on an API server that refuses some statuses.
func reconcilerThatMeets(t *testing.T, refuse func(*v1alpha1.Baseline) error, b *v1alpha1.Baseline) *Reconciler {
	t.Helper()
	types := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	c := fakeclient.NewBuilder(types).WithObjects(b).WithStatusSubresource(b).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, options ...client.SubResourceUpdateOption) error {
			if b, is := obj.(*v1alpha1.Baseline); is && refuse != nil {
				if err := refuse(b); err != nil {
					return err
				}
			}
			return c.SubResource(name).Update(ctx, obj, options...)
		},
	}).Build()
	return &Reconciler{Client: c, Live: c}
}

// What cannot be written or kept is not looked at again until something moves: each
// look notes its time, and so would lead to the next.
func TestWhatCannotBeWrittenRests(t *testing.T) {
	tests := map[string]struct {
		reason     string
		unreadable error
		want       bool
	}{
		"a body that is too large":      {reason: v1alpha1.ReasonBodyTooLarge, want: true},
		"a status that is too large":    {reason: v1alpha1.ReasonStatusTooLarge, want: true},
		"a status that is refused":      {reason: v1alpha1.ReasonStatusRefused, want: true},
		"an object that was unreadable": {reason: reasonUnknown},
		"an object that still is":       {reason: reasonUnknown, unreadable: errors.New("forbidden"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{}
			b.Status.State, b.Status.Guards = v1alpha1.StateUnknown, []string{}
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: tc.reason}}
			s := &subject{key: webKey, now: epoch, baseline: b, state: specguard.FromBaseline(b, nil)}
			s.view.Unknown = tc.unreadable
			r := &Reconciler{Records: NewRecords()}
			if got := r.nothingNew(s); got != tc.want {
				t.Errorf("nothing new is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestABodyIsMeasuredAsARevisionHoldsIt(t *testing.T) {
	noise := make([]byte, 900<<10)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	tests := map[string]struct {
		body []byte
		fits bool
	}{
		"a small one":                 {body: []byte(`{"spec":{}}`), fits: true},
		"a large one that compresses": {body: []byte(strings.Repeat("text ", 1<<20)), fits: true},
		"one that does not":           {body: noise},
		"as much of it as fits":       {body: noise[:v1alpha1.MaxBodyBytes-1024], fits: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			size := encodedSize(tc.body)
			if fits := size <= v1alpha1.MaxBodyBytes; fits != tc.fits {
				t.Errorf("%d bytes fit: %t, want %t", size, fits, tc.fits)
			}
			if stored := len(kube.Compress(tc.body)); stored > v1alpha1.MaxBodyBytes == tc.fits {
				t.Errorf("it is stored in %d bytes", stored)
			}
		})
	}
}

// The status of a Baseline has room for metadata of this size, and no more.
func TestMetadataThatIsKeptIsBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := map[string]struct {
		object kube.Object
		want   *v1alpha1.ObservedMetadata
	}{
		"what an object has as a rule": {
			object: kube.Object{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"meta.helm.sh/release-name": "web"}}},
			want:   &v1alpha1.ObservedMetadata{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"meta.helm.sh/release-name": "web"}},
		},
		"labels that are too large":        {object: kube.Object{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": long(kube.MaxLabelBytes)}}}},
		"an annotation that is not a name": {object: kube.Object{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"meta.helm.sh/release-name": long(kube.MaxPackageAnnotationBytes + 1)}}}},
		"an annotation beside a large one": {
			object: kube.Object{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"meta.helm.sh/release-name": long(kube.MaxPackageAnnotationBytes + 1), "meta.helm.sh/release-namespace": "shop",
			}}},
			want: &v1alpha1.ObservedMetadata{Annotations: map[string]string{"meta.helm.sh/release-namespace": "shop"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, metadataOf(&tc.object)); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}
