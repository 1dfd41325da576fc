package phase

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNextKeepsCertificatesOfWhatWaits checks that certificates are renewed for versions that stay
// in a phase for long, and for no others.
func TestNextKeepsCertificatesOfWhatWaits(t *testing.T) {
	due := func(o *Input) { o.Webhooks.Certificates.Due, o.Webhooks.Certificates.RenewDue = true, true }
	rotates := func(o *Input) { o.CSV.Status.CertsRotateAt = new(metav1.NewTime(noon().Add(time.Hour))) }
	for name, tc := range map[string]struct {
		o     Input
		renew bool
		after time.Duration
	}{
		"ReplacementFailed":   {o: good(replacing, "BeingReplaced", successor(broken), due), renew: true, after: time.Second},
		"ReplacementPending":  {o: good(replacing, "BeingReplaced", successor(pending), due), renew: true, after: time.Second},
		"LacksSomething":      {o: good(pending, "RequirementsNotMet", lacking, due), renew: true, after: time.Second},
		"BadSettings":         {o: good(pending, "NeedsReinstall", badConfig, due), renew: true, after: time.Second},
		"TakenOver":           {o: good(replacing, "BeingReplaced", successor(broken), oldCerts)},
		"DueLater":            {o: good(replacing, "BeingReplaced", successor(broken), rotates), after: time.Hour},
		"LooksSoonerAnyway":   {o: good(pending, "RequirementsNotMet", lacking, rotates), after: requirementsDelay},
		"InstalledAnyway":     {o: good(pending, "NeedsCertRotation", due)},
		"ReplacementVanished": {o: good(replacing, "BeingReplaced", due)},
	} {
		t.Run(name, func(t *testing.T) {
			next := Next(tc.o)
			if slices.Contains(next.Actions, RenewCertificates) != tc.renew || next.After != tc.after {
				t.Errorf("%s with %v after %s", next.Phase, next.Actions, next.After)
			}
		})
	}
}

// TestChecksCertificatesAgain checks that certificates are read again in every phase. They cause no
// events, and a Secret may be deleted or replaced by one of another provider.
func TestChecksCertificatesAgain(t *testing.T) {
	present := func(o *Input) { o.Webhooks.Certificates.Present = true }
	for name, o := range map[string]Input{
		"Succeeded":  good(succeeded, "InstallSucceeded", present),
		"Renewal":    good(succeeded, "InstallSucceeded", present, certificates),
		"Installing": good(installs, "InstallWaiting", present, waiting),
		"Failed":     good(broken, "ComponentUnhealthy", present, waiting),
		"Pending":    good(pending, "NeedsReinstall", present, badConfig),
	} {
		if next := Next(o); next.After == 0 || next.After > time.Minute {
			t.Errorf("%s: checked again after %s", name, next.After)
		}
	}
}
