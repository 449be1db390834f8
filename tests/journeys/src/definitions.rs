//! The definitions that the journeys use. `SHOP` stands for the address of the demo service.

/// Charges and ships. A card takes at most 100,000.
pub const ORDER: &str = r#"
id: order
version: "1.0.0"
specVersion: "0.8"
name: Order
metadata:
  swirl:
    search:
      orderId: {value: "${ .order }", type: string}
      amount: {value: "${ .amount }", type: number}
functions:
  - {name: charge, operation: "http://SHOP/openapi.json#chargeOrder"}
  - {name: ship, operation: "http://SHOP/openapi.json#shipOrder"}
states:
  - name: Check
    type: inject
    data: {checked: true}
    transition: Charge
  - name: Charge
    type: operation
    actions:
      - name: charge
        functionRef: {refName: charge, arguments: {order: "${ .order }", amount: "${ .amount }"}}
        actionDataFilter: {results: "${ {payment: .payment} }"}
    transition: Ship
  - name: Ship
    type: operation
    actions:
      - name: ship
        functionRef: {refName: ship, arguments: {order: "${ .order }"}}
        actionDataFilter: {results: "${ {tracking: .tracking} }"}
    end: true
"#;

/// Fails once.
pub const PARCELS: &str = r#"
id: parcels
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: weigh, operation: "http://SHOP/openapi.json#flaky"}
states:
  - name: Weigh
    type: operation
    actions:
      - name: weigh
        functionRef: {refName: weigh, arguments: {key: "${ .parcel }", failures: 1}}
    end: true
"#;

/// Waits for an event of its order.
pub const APPROVAL: &str = r#"
id: approval
version: "1.0.0"
specVersion: "0.8"
events:
  - name: approved
    type: org.example.approved
    source: /desk
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
states:
  - name: Note
    type: inject
    data: {noted: true}
    transition: Await approval
  - name: Await approval
    type: event
    onEvents: [{eventRefs: [approved]}]
    end: true
"#;

/// Reserves, and ships after payment.
pub const DELIVERY: &str = r#"
id: delivery
version: "1.0.0"
specVersion: "0.8"
name: Delivery
events:
  - name: paid
    type: org.example.paid
    source: /bank
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
  - name: delivered
    type: org.example.delivered
    source: /carrier
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
functions:
  - {name: reserve, operation: "http://SHOP/openapi.json#reserveItem"}
  - {name: ship, operation: "http://SHOP/openapi.json#shipOrder"}
states:
  - name: Reserve
    type: operation
    actions:
      - name: reserve
        functionRef:
          refName: reserve
          arguments: {order: "${ .order }", item: "${ .item }", quantity: "${ .quantity }"}
        actionDataFilter: {results: "${ {reservation: .reservation} }"}
    transition: Await payment
  - name: Await payment
    type: event
    onEvents: [{eventRefs: [paid]}]
    transition: Ship
  - name: Ship
    type: operation
    actions:
      - name: ship
        functionRef: {refName: ship, arguments: {order: "${ .order }"}}
        actionDataFilter: {results: "${ {tracking: .tracking} }"}
    transition: Await delivery
  - name: Await delivery
    type: event
    onEvents: [{eventRefs: [delivered]}]
    timeouts: {eventTimeout: P14D}
    end: true
"#;

/// Pays and reserves at once. A card takes at most 100,000.
pub const BOOKING: &str = r#"
id: booking
version: "1.0.0"
specVersion: "0.8"
metadata:
  swirl:
    search:
      bookingId: {value: "${ .order }", type: string}
functions:
  - {name: charge, operation: "http://SHOP/openapi.json#chargeOrder"}
  - {name: reserve, operation: "http://SHOP/openapi.json#reserveItem"}
states:
  - name: Note
    type: inject
    data: {noted: true}
    transition: Pay and reserve
  - name: Pay and reserve
    type: parallel
    branches:
      - name: Payment
        actions:
          - name: charge
            functionRef: {refName: charge, arguments: {order: "${ .order }", amount: "${ .amount }"}}
            sleep: {before: PT1S}
      - name: Stock
        actions:
          - name: reserve
            functionRef: {refName: reserve, arguments: {order: "${ .order }", item: lamp, quantity: 1}}
    end: true
"#;

/// Releases what it has reserved if the payment is declined.
pub const SAGA: &str = r#"
id: saga
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: reserve, operation: "http://SHOP/openapi.json#reserveItem"}
  - {name: charge, operation: "http://SHOP/openapi.json#chargeOrder"}
errors:
  - {name: Payment declined, code: "402"}
states:
  - name: Reserve
    type: operation
    actions:
      - name: reserve
        functionRef: {refName: reserve, arguments: {order: "${ .order }", item: lamp, quantity: 1}}
    compensatedBy: Release
    transition: Charge
  - name: Charge
    type: operation
    actions:
      - name: charge
        functionRef: {refName: charge, arguments: {order: "${ .order }", amount: "${ .amount }"}}
    onErrors:
      - errorRef: Payment declined
        transition: {nextState: Declined, compensate: true}
    end: true
  - {name: Declined, type: inject, data: {status: declined}, end: true}
  - {name: Release, type: inject, usedForCompensation: true, data: {released: true}}
"#;

/// Starts every hour.
pub const HOURLY: &str = r#"
id: hourly
version: "1.0.0"
specVersion: "0.8"
start: {stateName: Sweep, schedule: {cron: "0 * * * *"}}
states:
  - {name: Sweep, type: inject, data: {swept: true}, end: true}
"#;

/// Has an input schema.
pub const VISIT: &str = r#"
id: visit
version: "1.0.0"
specVersion: "0.8"
dataInputSchema:
  schema:
    type: object
    required: [name]
    properties:
      name: {type: string, title: Your name, description: As it is in your passport}
      age: {type: integer, title: Age}
      size: {enum: [small, large], title: Size of the room}
      breakfast: {type: boolean, title: With breakfast}
  failOnValidationErrors: true
states:
  - {name: Book, type: inject, data: {booked: true}, end: true}
"#;

/// A greeting in this version.
pub fn greeting(version: &str, text: &str) -> String {
    format!(
        "id: greeting\nversion: {version}\nspecVersion: '0.8'\nstates:\n  \
         - {{name: Greet, type: inject, data: {{text: {text}}}, end: true}}\n"
    )
}
