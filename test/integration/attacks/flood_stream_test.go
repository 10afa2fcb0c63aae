// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// forge adds records like one that differ in their object.
const forge = `
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  local record = string.gsub(ARGV[3], ARGV[4], ARGV[5] .. string.format('%012d', i))
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[6], '*', 'r', record)
end
return redis.call('XLEN', KEYS[1])`

// forgeThousands puts into Redis what the reviews of a flood leave there, past the
// port, which needs a minute for a hundred thousand of them. It says how many records
// there are then.
func (p *place) forgeThousands(like string) (length int) {
	p.t.Helper()
	const each = 5000 // more in one call may take longer than the client waits, which then repeats it
	pattern, prefix := strings.ReplaceAll(anybody, "-", "%-"), anybody[:len(anybody)-12]
	for first := 1; first <= streamLength+1000; first += each {
		last := min(first+each-1, streamLength+1000)
		var err error
		length, err = stream.Eval(p.t.Context(), forge, []string{detailsKey}, first, last, like, pattern, prefix, streamLength).Int()
		p.must(err)
	}
	return length
}

// S1: the stream overflows before the assessor has read the true records.
func TestAFloodThatOverflowsTheStreamIsAGapThatExcusesNobody(t *testing.T) {
	p := newPlace(t)
	p.swept()
	p.guard()
	for _, name := range []string{"edited", "released", "scaled", "deleted", "afterwards"} {
		p.deploy(name)
	}
	// One forged review as it comes out of the port.
	code, answer, err := post(t, pod(t), "/validate", p.forgeries("edited")(0))
	if err != nil || code != http.StatusOK {
		t.Fatalf("%d %s (%v)", code, answer, err)
	}
	var forged string
	p.eventually("its record is there", func() error {
		messages, err := stream.XRevRange(t.Context(), detailsKey, "+", "-").Result()
		for _, m := range messages {
			if r := m.Values["r"].(string); strings.Contains(r, anybody) {
				forged = r
				return nil
			}
		}
		return fmt.Errorf("there is none (%w)", err)
	})
	gaps, dropped := p.judged("plumbline_assessor_admission_record_gaps_total"), p.judged("plumbline_assessor_admission_records_dropped_total")

	// The assessor is held up, and goes on before its lease is over.
	p.must(judge.Signal(syscall.SIGSTOP))
	goOn := sync.OnceFunc(func() { p.must(judge.Signal(syscall.SIGCONT)) })
	t.Cleanup(goOn)
	stopped := time.Now()
	human := as(t, mallory)
	p.scaleTo(as(t, "wendy"), "afterwards", 9) // its record is the answer to a read that is under way
	p.recorded("wendy", specguard.OperationUpdate, 1)
	p.scaleTo(human, "scaled", 9)
	p.must(human.Delete(t.Context(), p.named("deleted")))
	p.setImage(human, "edited", "registry.example/evil:1")
	p.setImage(as(t, ci), "released", "registry.example/shop:2")
	p.recorded(mallory, specguard.OperationDelete, 1)
	p.recorded(mallory, specguard.OperationUpdate, 2)
	length := p.forgeThousands(forged)
	goOn()
	t.Logf("the assessor stood still for %s; the stream holds %d records", time.Since(stopped), length)

	p.untilOneOf("edited", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	p.untilOneOf("scaled", fmt.Sprintf(scaledBy, unknown))
	p.untilOneOf("deleted", fmt.Sprintf(deletedBy, nobody))
	p.eventually("what CI wrote is authorized", func() error {
		if b, err := p.baseline("released"); err != nil || b.Spec.Authorized.Number != 2 || b.Status.State != v1alpha1.StateInSync {
			return fmt.Errorf("it is not (%w)", err)
		}
		return nil
	})
	p.settledRecords("afterwards")
	if n := p.judged("plumbline_assessor_admission_record_gaps_total") - gaps; n < 1 {
		t.Errorf("%v gaps are counted", n)
	}
	// Nobody joins the forged ones: they displace each other, and are counted.
	if n := p.judged("plumbline_assessor_admission_records_dropped_total") - dropped; n < streamLength/2 {
		t.Errorf("%v records are counted as dropped", n)
	}
	now, peak, err := replay.ResidentBytes(judge.PID())
	p.must(err)
	t.Logf("the assessor: %d MiB are resident, %d at most", now>>20, peak>>20)
	if peak >= assessorMemory {
		t.Errorf("%d MiB were resident, the limit is %d", peak>>20, assessorMemory>>20)
	}
	p.untilOneOf("scaled", fmt.Sprintf(scaledBy, unknown))
	p.untilOneOf("deleted", fmt.Sprintf(deletedBy, nobody))
}

// judged reads one of the assessor's metrics.
func (p *place) judged(name string, labels ...string) float64 {
	p.t.Helper()
	value, err := judge.Metric(p.t.Context(), name, labels...)
	p.must(err)
	return value
}
