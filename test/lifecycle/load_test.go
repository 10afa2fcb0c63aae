// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/lifecycle/writes"
)

// objects are alive at a time, and so the most calls under way. 200 calls/s leave
// each call 160 ms on average; a machine that is slower gets fewer calls, and not
// so many at once that they exceed the webhooks' 2 s for want of a processor.
const objects = 32

var (
	// rate is in calls per second; LIFECYCLE_RATE sets another where 200 are too
	// much for the machine.
	rate = rateFrom(os.Getenv("LIFECYCLE_RATE"))
	// enough calls while something happens: 5,000 at the usual rate.
	enough = 25 * rate
)

func rateFrom(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 200
}

// counts are what the API server says of its calls to our two webhooks.
type counts struct {
	answered, unanswered, failOpen float64
}

func (c counts) minus(other counts) counts {
	return counts{c.answered - other.answered, c.unanswered - other.unanswered, c.failOpen - other.failOpen}
}

// apiServerCounts reads them. A call without an answer has another code than 200.
func apiServerCounts(ctx context.Context) (c counts, err error) {
	page, err := kube.CoreV1().RESTClient().Get().AbsPath("/metrics").MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return counts{}, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	for _, name := range []string{"spec-hash.plumbline.dev", "verdict.plumbline.dev"} {
		label := fmt.Sprintf("name=%q", name)
		all, err := harness.SumSamples(string(page), "apiserver_admission_webhook_request_total", label)
		if err != nil {
			return counts{}, err
		}
		good, err := harness.SumSamples(string(page), "apiserver_admission_webhook_request_total", label, `code="200"`)
		if err != nil {
			return counts{}, err
		}
		open, err := harness.SumSamples(string(page), "apiserver_admission_webhook_fail_open_count", label)
		if err != nil {
			return counts{}, err
		}
		c.answered, c.unanswered, c.failOpen = c.answered+good, c.unanswered+all-good, c.failOpen+open
	}
	return c, nil
}

// stream is the writes that go on during a test.
type stream struct {
	*testing.T
	driver *writes.Driver
	before counts         // before the first call
	report *writes.Report // once it has ended

	// What was so when the stream ran and nothing had happened yet: on a machine
	// that is out of breath the first burst of creates can wait 2 s for the webhook.
	steady    counts
	unstamped int
}

// newStream starts the writes once the webhook is whole, and returns when they run.
func newStream(t *testing.T, name string) *stream {
	t.Helper()
	whole(t)
	must(t, clearObjects(t.Context(), busyNamespaces...)) // a run that was killed left objects
	s := &stream{T: t}
	s.before = s.counts()
	t.Cleanup(func() {
		s.stop()
		if err := clearObjects(context.WithoutCancel(t.Context()), busyNamespaces...); err != nil {
			t.Error(err)
		}
	})
	var err error
	s.driver, err = writes.Start(t.Context(), writes.Config{
		REST: config, Namespaces: busyNamespaces, Name: name, Rate: rate, Objects: objects,
	})
	must(t, err)
	s.more(rate)
	s.steady = s.counts()
	_, s.unstamped = s.driver.Answered()
	return s
}

// clearObjects removes what tests have written.
func clearObjects(ctx context.Context, namespaces ...string) error {
	for _, namespace := range namespaces {
		err := kube.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("removing the Deployments of %s: %w", namespace, err)
		}
	}
	return nil
}

func (s *stream) counts() counts {
	s.Helper()
	c, err := apiServerCounts(s.Context())
	must(s.T, err)
	return c
}

// more waits for n further calls.
func (s *stream) more(n int) {
	s.Helper()
	began, _ := s.driver.Answered()
	eventually(s.T, fmt.Sprintf("%d further calls", n), func(context.Context) (bool, string) {
		now, _ := s.driver.Answered()
		return now-began >= n, fmt.Sprint(now - began)
	})
}

// stop ends the writes, if they go on, and shows what they were like.
func (s *stream) stop() *writes.Report {
	if s.report == nil && s.driver != nil {
		s.report = s.driver.Stop()
		fmt.Printf("    %s: %s\n", s.Name(), s.report)
		for _, problem := range append(s.report.Errors, s.report.Marks...) {
			fmt.Println("        ", problem)
		}
	}
	return s.report
}

// finish lets the writes go on until there were enough, ends them, and holds
// that none failed and that what is stored is what was answered.
func (s *stream) finish() (*writes.Report, counts) {
	s.Helper()
	if now, _ := s.driver.Answered(); now < enough {
		s.more(enough - now)
	}
	report := s.stop()
	after := s.counts().minus(s.before)
	fmt.Printf("    reviews answered %v, unanswered %v, fail-open %v\n", after.answered, after.unanswered, after.failOpen)
	if report.Failed != 0 {
		s.Errorf("%d of %d calls failed, the first ones are above", report.Failed, report.Total())
	}
	// After a failed call nobody knows what is stored.
	if diff := cmp.Diff(report.Living, s.stored()); diff != "" && report.Failed == 0 {
		s.Errorf("what is stored is not what was answered (-answered +stored):\n%s", diff)
	}
	return report, after
}

// finishGraceful finishes where the webhook was never away: every object was
// stamped, and every review answered.
func (s *stream) finishGraceful() {
	s.Helper()
	report, after := s.finish()
	lost := s.before.minus(s.steady)
	lost.failOpen, lost.unanswered = lost.failOpen+after.failOpen, lost.unanswered+after.unanswered
	if n := report.Unstamped - s.unstamped; n != 0 {
		s.Errorf("%d calls came back without the stamp of their object, the first and the last are above", n)
	}
	if lost.failOpen != 0 || lost.unanswered != 0 {
		s.Errorf("the API server went on without the webhook %v times, after %v calls without an answer", lost.failOpen, lost.unanswered)
	}
	if after.answered < float64(report.Reviews()) {
		s.Errorf("%v reviews were answered, and the calls need %d: they were not all asked about", after.answered, report.Reviews())
	}
}

// stored lists what the stream's namespaces hold.
func (s *stream) stored() []writes.Stored {
	s.Helper()
	var all []writes.Stored
	for _, namespace := range busyNamespaces {
		for _, o := range observe(s.Context(), s.T, namespace) {
			all = append(all, o.Stored)
		}
	}
	slices.SortFunc(all, writes.Stored.Compare)
	return all
}

// observe lists the Deployments of a namespace.
func observe(ctx context.Context, t *testing.T, namespace string) []writes.Observation {
	t.Helper()
	raw, err := kube.AppsV1().RESTClient().Get().Namespace(namespace).Resource("deployments").SetHeader("Accept", "application/json").DoRaw(ctx)
	must(t, err)
	var list struct{ Items []json.RawMessage }
	must(t, json.Unmarshal(raw, &list))
	var all []writes.Observation
	for _, item := range list.Items {
		o, err := writes.Observe(item)
		must(t, err)
		all = append(all, o)
	}
	return all
}
