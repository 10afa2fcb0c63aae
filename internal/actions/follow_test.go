// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// watches answers requests for a watch in turn: with an error, or with so many events before the watch ends. The
// context ends when no answer is left.
type watches struct {
	answers []any
	asked   int
	end     context.CancelFunc
}

func (w *watches) answer(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	if w.asked == len(w.answers) {
		w.end()
		return watch.NewEmptyWatch(), nil
	}
	w.asked++
	switch answer := w.answers[w.asked-1].(type) {
	case error:
		return nil, answer
	case int:
		events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: answer})
		for range answer {
			events.Modify(&v1alpha1.Baseline{})
		}
		events.Stop() // the events that are in the channel stay
		return events, nil
	default:
		panic("an answer is an error, or a number of events")
	}
}

// TestFollowList_TakesUpABrokenWatch: the API server goes away while --watch runs, and the command goes on.
func TestFollowList_TakesUpABrokenWatch(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "baselines"}, "", errors.New("no right"))
	type story struct {
		Changes int
		// Warned counts the warnings, and Pauses has the attempts that were waited for.
		Warned int
		Pauses []int
		Asked  int
	}
	for name, tc := range map[string]struct {
		answers []any
		want    story
		err     error
	}{
		"a watch that the server ends is taken up":   {answers: []any{2, 1}, want: story{Changes: 3, Pauses: []int{1, 1}, Asked: 2}},
		"a server that is away is asked again":       {answers: []any{1, away, away, 1}, want: story{Changes: 2, Warned: 2, Pauses: []int{1, 2, 3, 1}, Asked: 4}},
		"an overloaded server is asked again":        {answers: []any{apierrors.NewTooManyRequests("later", 1), 1}, want: story{Changes: 1, Warned: 1, Pauses: []int{1, 1}, Asked: 2}},
		"a missing permission ends the command":      {answers: []any{1, forbidden, 1}, want: story{Changes: 1, Pauses: []int{1}, Asked: 2}, err: forbidden},
		"a server that fails at first is no refusal": {answers: []any{away, 1}, want: story{Changes: 1, Warned: 1, Pauses: []int{1, 1}, Asked: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &watches{answers: tc.answers, end: cancel}
			api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Watch: w.answer}).Build()
			var got story
			err := FollowList(ctx, api, &v1alpha1.BaselineList{}, &client.ListOptions{},
				func(_ context.Context, attempt int) { got.Pauses = append(got.Pauses, attempt) },
				func(error) { got.Warned++ }, func() { got.Changes++ })
			if !errors.Is(err, tc.err) {
				t.Errorf("the error is %v, want %v", err, tc.err)
			}
			if got.Asked = w.asked; cmp.Diff(tc.want, got) != "" {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}
