package api

// Field managers and Leases.
const (
	// FieldManager is the field manager of the individual fields that the supervisor sets.
	FieldManager = "chandlery-supervisor"
	// ManifestFieldManager is the field manager of applied manifests. It differs from FieldManager. Fields of a
	// manifest are thus distinct from those that other controllers set on the same object.
	ManifestFieldManager = "chandlery-supervisor-manifests"
	// SubscriptionFieldManager is the field manager of the metadata of Subscriptions.
	SubscriptionFieldManager = "chandlery-subscription"
	// LeaseName is the name of the Lease for which all supervisors compete.
	LeaseName = "chandlery-supervisor"
)
