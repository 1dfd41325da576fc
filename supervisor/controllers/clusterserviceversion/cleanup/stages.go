package cleanup

import "context"

// stage is one step of a clean-up. It finds the remaining objects, deletes some, and returns what
// the clean-up still waits for.
type stage struct {
	name string
	run  func(context.Context, *cleanup) (stageResult, error)
}

// stages returns the stages in their order. Custom resources come first, while their operator and
// its RBAC exist to remove their finalizers. Then the API server stops calling the operator. Then
// bindings are deleted before their roles, and then the other cluster-scoped objects of the bundle.
// Copies follow, since objects in their namespaces may belong to them. The records of install plans
// come last: the clean-up of custom resources needs them, and each pass begins with it. Objects in
// the version's own namespace, such as certificates and Services, are garbage collected by their
// owner references.
func (c *Cleaner) stages() []stage {
	return []stage{
		{"custom resources", c.resources.clean},
		{"webhook configurations", c.deleteKinds(webhookConfigurations()...)},
		{"API services", c.deleteKinds(apiServiceKind())},
		{"conversions", c.conversions.clean},
		{"bindings", c.deleteKinds(bindings()...)},
		{"roles", c.deleteKinds(roles()...)},
		{"other objects of the bundle", c.cleanContent},
		{"copies", c.deleteKinds(copies())},
		{"records of install plans", c.removeRecords},
	}
}
