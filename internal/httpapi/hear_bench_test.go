// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"log/slog"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// discarding is a connection that takes all at once.
type discarding struct{ header http.Header }

func (d discarding) Header() http.Header              { return d.header }
func (discarding) WriteHeader(int)                    {}
func (discarding) Write(p []byte) (int, error)        { return len(p), nil }
func (discarding) SetWriteDeadline(_ time.Time) error { return nil }
func (discarding) FlushError() error                  { return nil }

// processorTime is the time of the processors that the process has used: other work beside it does not count.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkHearing has 100 streams send five events, as many as come between two wakes at 100 events a second. It counts
// the work of the streams without that of their connections.
func BenchmarkHearing(b *testing.B) {
	const listeners, burst = 100, 5
	f := newFeed(nil, slog.New(slog.DiscardHandler), "")
	s := &streams{counts: newStreamMetrics()}
	to := &eventSource{ResponseWriter: discarding{http.Header{}}, control: http.NewResponseController(discarding{http.Header{}})}
	hearings, places := make([]hearing, listeners), make([]position, listeners)
	for i := range hearings {
		var err error
		if hearings[i], err = admit(b.Context(), f, sharedBy{nil, &hearerWith{rights: map[string]bool{"": true}}}, ""); err != nil {
			b.Fatal(err)
		}
		defer hearings[i].leave()
	}
	told, began := 0, processorTime(b)
	for b.Loop() {
		for range burst {
			told++
			f.take(&followedKinds[0], &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "production-" + strconv.Itoa(told), UID: types.UID("2d6f9c3e-0000-4000-8000-" + strconv.Itoa(told)),
			}})
		}
		for i, h := range hearings {
			news, _, _ := h.hear(b.Context(), &places[i])
			if err := s.sendAll(b.Context(), to, news); err != nil || len(news) != burst {
				b.Fatalf("%d events: %v", len(news), err)
			}
		}
	}
	b.ReportMetric(float64((processorTime(b)-began).Nanoseconds())/float64(b.N*listeners*burst), "ns-of-processor/event")
}
