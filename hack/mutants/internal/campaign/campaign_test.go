// SPDX-License-Identifier: Apache-2.0

package campaign_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheFirstMutantsThatCompileAreTriedInWhateverOrderTheyEnd(t *testing.T) {
	verdict := rapid.SampledFrom([]campaign.Verdict{campaign.Killed, campaign.Survived, campaign.NotCompiled})
	rapid.Check(t, func(t *rapid.T) {
		verdicts := rapid.SliceOfN(verdict, 0, 20).Draw(t, "verdicts")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 5), len(verdicts), len(verdicts)).Draw(t, "pauses")
		wanted := rapid.IntRange(0, 10).Draw(t, "wanted")
		var mutants []mutation.Mutant
		var want []campaign.Outcome
		for i, v := range verdicts {
			mutants = append(mutants, mutation.Mutant{Line: i})
			if v != campaign.NotCompiled && len(want) < wanted {
				want = append(want, campaign.Outcome{Mutant: mutants[i], Verdict: v})
			}
		}
		got, err := campaign.TryMutants(t.Context(), mutants, wanted, rapid.IntRange(1, 4).Draw(t, "workers"),
			func(_ context.Context, m *mutation.Mutant) (campaign.Verdict, error) {
				for range pauses[m.Line] {
					runtime.Gosched()
				}
				return verdicts[m.Line], nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestWhatWasFoundBeforeAnErrorIsKept(t *testing.T) {
	failure := errors.New("the disk is full")
	got, err := campaign.TryMutants(t.Context(), make([]mutation.Mutant, 5), 5, 1, failAfter(2, failure))
	if !errors.Is(err, failure) || len(got) != 2 {
		t.Errorf("got %v and the error %v", got, err)
	}
}

func TestACampaignThatIsStoppedEndsThoughAWorkerWaitsForAnother(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got, err := campaign.TryMutants(ctx, make([]mutation.Mutant, 5), 1, 2,
		func(ctx context.Context, _ *mutation.Mutant) (campaign.Verdict, error) {
			stop()
			<-ctx.Done()
			return "", ctx.Err()
		})
	if !errors.Is(err, context.Canceled) || len(got) != 0 {
		t.Errorf("got %v and the error %v", got, err)
	}
}

func failAfter(count int, failure error) campaign.Try {
	return func(context.Context, *mutation.Mutant) (campaign.Verdict, error) {
		if count--; count < 0 {
			return "", failure
		}
		return campaign.Survived, nil
	}
}
