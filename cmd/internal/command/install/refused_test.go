//go:build linux

package install

import (
	"encoding/json"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/testenv/pseudoterminal"
)

// TestRefusedUpgrade covers the document of an upgrade that the user does not confirm.
func TestRefusedUpgrade(t *testing.T) {
	t.Parallel()
	person, program := pseudoterminal.Open(t)
	if _, err := person.WriteString("n\n"); err != nil {
		t.Fatal(err)
	}
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}, Spec: &operatorsv1alpha1.SubscriptionSpec{}}
	o := upgradeOptions{output: console.Output{Form: console.JSON}}
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetIn(program)
	cmd.SetOut(&out)
	cmd.SetErr(program)
	res := &dryrun.Result{Namespace: "shop", Steps: []dryrun.Step{step(1, "lamp.v2", "2.0.0", "lamp")}}
	err := o.upgrade(cmd, nil, &wait.Objects{Subscription: sub}, res)
	if err == nil || err.Error() != "nothing was changed" || console.CodeOf(err) != console.Failed {
		t.Errorf("error %v", err)
	}
	var got upgradeReport
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if got.Outcome != planned || got.To != "lamp.v2" || len(got.Plan.Steps) != 1 {
		t.Errorf("%+v", got)
	}
}
