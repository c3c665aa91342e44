// What programs include for the language, which is there already.
#pragma once
