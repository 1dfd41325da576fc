package constraint

import "testing"

// TestLateShares checks that late owners still get a share after many steps are spent.
func TestLateShares(t *testing.T) {
	var b Budget
	early, late := new(Owner), new(Owner)
	if got := b.share(early).left; got != ownerSteps {
		t.Errorf("the first share is %d", got)
	}
	b.taken = budgetSteps
	if got := b.share(late).left; got != lateSteps {
		t.Errorf("a late share is %d", got)
	}
	if got := b.share(early).left; got != ownerSteps {
		t.Errorf("the first share has become %d", got)
	}
}
